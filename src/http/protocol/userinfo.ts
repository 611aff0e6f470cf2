// GET and POST /userinfo (OpenID Connect Core §5.3) over HTTP. `oauth/endpoints/userinfo.ts` decides what is disclosed.

import {
  USERINFO_SCOPE,
  type UserinfoEndpoint,
  type UserinfoRequest,
  userinfoChallenge,
} from '../../oauth/endpoints/userinfo.ts';
import type { CertificateSource } from '../mtls/certificate-source.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';
import { queryOf } from '../server/raw-request.ts';

export interface UserinfoOptions {
  readonly issuer: string;
  readonly userinfo: UserinfoEndpoint;
  /** Where this server has the certificates of its callers from. */
  readonly certificates: CertificateSource;
}

/** The userinfo endpoint over HTTP. */
export function userinfoEndpoint(options: UserinfoOptions): Endpoint {
  const handler = (exchange: Exchange) => answer(options, exchange);
  return {
    route: 'userinfo',
    path: '/userinfo',
    answers: 'json',
    body: 'form or none',
    challenge: { facts: userinfoChallenge(options.issuer), scope: USERINFO_SCOPE },
    cors: 'registered',
    head: false,
    handlers: { GET: handler, POST: handler },
  };
}

async function answer({ userinfo, certificates }: UserinfoOptions, exchange: Exchange): Promise<void> {
  const { reply, log } = exchange;
  const { claims, clientId, scope, dpopNonce } = await userinfo.handle(requestOf(exchange, certificates));
  Object.assign(log, { clientId, scope: scope.join(' '), outcome: 'disclosed' });
  if (dpopNonce !== undefined) reply.header('dpop-nonce', dpopNonce);
  reply.type('application/json; charset=utf-8').send(JSON.stringify(claims));
}

function requestOf({ request, parameters, address }: Exchange, certificates: CertificateSource): UserinfoRequest {
  const { authorization, dpop, 'content-type': contentType } = request.headers;
  parameters.rejectDuplicates(['access_token']);
  return {
    method: request.method,
    // A second Authorization header is refused before, and Node joins DPoP headers by commas, which no proof has.
    authorization: authorization === undefined ? [] : [authorization],
    proofs: typeof dpop === 'string' ? [dpop] : [],
    query: Buffer.from(queryOf(request.url) ?? '').toString('latin1'),
    contentType,
    formTokens: parameters.all('access_token'),
    certificate: certificates(request.raw),
    address,
  };
}
