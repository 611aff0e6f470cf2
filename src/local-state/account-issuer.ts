// The issuer of ServiceAccount tokens of `grantry dev`, in place of that of a cluster: its key is kept in `.grantry/`, and
// `grantry dev-token` mints by it what the kubelet would mount into a pod.

import { createPublicKey } from 'node:crypto';
import type { AccountIssuer, ClusterIssuer } from '../oauth/ports/cluster-issuer.ts';
import type { Clock, Random } from '../oauth/ports/ports.ts';
import { generateSigningKeyPem, importSigningKey, type SigningKey } from '../oauth/registry/keys.ts';
import { readJwk, type VerificationKey } from '../oauth/values/jwk.ts';
import { randomId } from '../oauth/values/random-id.ts';
import { signatureOf } from '../oauth/values/signature.ts';
import { StateError } from './state-error.ts';
import type { StateFiles } from './state-files.ts';

/** That of most clusters. No token of a real cluster verifies here: the key is another one. */
const ISSUER = 'https://kubernetes.default.svc.cluster.local';
const ALGORITHM = 'ES256';
const FILE = 'service-accounts.pem';
/** As the kubelet asks for by default. */
const LIFETIME_SECONDS = 3600;

/** A ServiceAccount that a token is minted for. */
export interface MintedAccount {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** {@link ClusterIssuer} of one folder of manifests. */
export class DevAccountIssuer implements ClusterIssuer<VerificationKey> {
  readonly #key: SigningKey;
  readonly #current: AccountIssuer<VerificationKey>;

  private constructor(key: SigningKey, published: VerificationKey) {
    this.#key = key;
    this.#current = { issuer: ISSUER, keys: [published] };
  }

  /** @throws StateError for a key file that cannot be read */
  static async open(state: StateFiles): Promise<DevAccountIssuer> {
    const pem = await state.keep(FILE, async () => (await generateSigningKeyPem(ALGORITHM)).trimEnd());
    const key = await importSigningKey(pem, ALGORITHM, 'Active').catch(() => {
      throw new StateError(state.fileOf(FILE) ?? FILE, `is not a private key in PEM that fits ${ALGORITHM}; remove it`);
    });
    const published = readJwk({ ...createPublicKey(key.privateKey).export({ format: 'jwk' }), kid: key.kid });
    if (typeof published === 'string') throw new TypeError(`a generated key is not usable: ${published}`);
    return new DevAccountIssuer(key, published);
  }

  async current(): Promise<AccountIssuer<VerificationKey>> {
    return this.#current;
  }

  /** A token of the account, as a projected volume holds it. @param audience the issuer of the token server */
  mint(account: MintedAccount, audience: string, { clock, random }: { clock: Clock; random: Random }): string {
    const iat = Math.floor(clock.now() / 1000);
    const { namespace, name, uid } = account;
    const claims = {
      iss: ISSUER,
      sub: `system:serviceaccount:${namespace}:${name}`,
      aud: [audience],
      iat,
      nbf: iat,
      exp: iat + LIFETIME_SECONDS,
      jti: randomId(random, 16),
      'kubernetes.io': { namespace, serviceaccount: { name, uid } },
    };
    const encoded = [{ alg: ALGORITHM, kid: this.#key.kid }, claims].map((part) =>
      Buffer.from(JSON.stringify(part)).toString('base64url'),
    );
    const signingInput = encoded.join('.');
    return `${signingInput}.${signatureOf(signingInput, ALGORITHM, this.#key.privateKey)}`;
  }
}
