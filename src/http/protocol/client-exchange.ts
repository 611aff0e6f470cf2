// The steps shared by the three endpoints that authenticate clients: the call into the protocol core, the client in the
// log line, and the count of authentications.

import type { Authenticated, ClientRequest } from '../../oauth/client-auth/client-authentication.ts';
import { OAuthError } from '../../oauth/ports/error.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { CertificateSource } from '../mtls/certificate-source.ts';
import type { Exchange } from '../server/endpoint.ts';

/** A protocol endpoint as HTTP calls it. */
export interface ClientEndpoint<Result extends Authenticated> {
  handle(request: ClientRequest): Promise<Result>;
}

export interface ClientExchangeOptions {
  readonly metrics: Metrics;
  /** Where this server has the certificates of its callers from. */
  readonly certificates: CertificateSource;
}

/** Hands a request to its protocol endpoint. @throws what that throws */
export async function exchangeWithClient<Result extends Authenticated>(
  endpoint: ClientEndpoint<Result>,
  { request, parameters, address, log }: Exchange,
  { metrics, certificates }: ClientExchangeOptions,
): Promise<Result> {
  const { authorization, dpop } = request.headers;
  try {
    const der = certificates(request.raw);
    const result = await endpoint.handle({
      parameters,
      authorization,
      certificate: der && { der },
      // Node joins repeated headers of this name by commas.
      proof: typeof dpop === 'string' ? dpop : undefined,
      address,
    });
    log.clientId = result.clientId;
    metrics.clientAuthentications.inc({ method: result.authMethod, outcome: 'succeeded' });
    return result;
  } catch (error) {
    const outcome = error instanceof OAuthError ? authenticationOutcome(error) : undefined;
    if (error instanceof OAuthError && outcome !== undefined) {
      metrics.clientAuthentications.inc({ method: error.authMethod ?? 'unknown', outcome });
    }
    throw error;
  }
}

/** The result of authentication in a refused request; undefined when the request was refused before it. */
function authenticationOutcome({ code, reason, clientId }: OAuthError): 'succeeded' | 'failed' | 'limited' | undefined {
  if (reason === 'client_authentication_limited') return 'limited';
  // A public client has authenticated by its id; introspection demands more than that (RFC 7662 §2.1).
  if (code === 'invalid_client' && reason !== 'public_client') return 'failed';
  return clientId === undefined ? undefined : 'succeeded';
}
