// `grantry generate-key`: makes the private key of a private_key_jwt client as a JWK in a file, and prints the part of its
// manifest that holds the public one.

import { rm, writeFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import { generateSigningKeyPem, importSigningKey } from '../../oauth/registry/keys.ts';
import type { SigningAlgorithm } from '../../oauth/values/signature.ts';

export type KeyAlgorithm = SigningAlgorithm;

export interface GenerateKeyOptions {
  /** Where the private key goes. */
  readonly file: string;
  readonly algorithm: KeyAlgorithm;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

/**
 * Writes the key to a new file that its owner alone may read. @returns 0; 1 when the file exists or cannot be written: no
 * key is lost, and nothing is printed to stdout
 */
export async function generateKey({ file, algorithm, stdout, stderr }: GenerateKeyOptions): Promise<number> {
  const { privateKey, publicJwk } = await importSigningKey(await generateSigningKeyPem(algorithm), algorithm, 'Active');
  const { kid, alg, use } = publicJwk;
  const privateJwk = { ...privateKey.export({ format: 'jwk' }), kid, alg, use };
  const fault = await writeNew(file, `${JSON.stringify(privateJwk, null, 2)}\n`);
  if (fault !== undefined) {
    stderr.write(`grantry generate-key: ${file} ${fault}\n`);
    return 1;
  }
  // For readers of YAML 1.1, kubectl among them, a member y without quotes is the name true.
  stdout.write(stringify(manifestPart(publicJwk, algorithm), { version: '1.1', lineWidth: 0 }));
  stderr.write(`${file} has the private key. The above goes into spec.auth.privateKeyJwt of its OAuthClient.\n`);
  return 0;
}

/** RS256 is accepted only where the manifest names it. */
function manifestPart(publicJwk: object, algorithm: SigningAlgorithm): object {
  const jwks = { keys: [publicJwk] };
  return algorithm === 'RS256' ? { jwks, signingAlgorithms: [algorithm] } : { jwks };
}

/** Writes a file that does not exist; else why it could not. */
async function writeNew(file: string, text: string): Promise<string | undefined> {
  try {
    await writeFile(file, text, { mode: 0o600, flag: 'wx' });
    return undefined;
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return 'exists already; it is left as it is';
    // A full disk: the file is ours, and holds half a key.
    if (code === 'ENOSPC' || code === 'EIO' || code === 'EDQUOT') await rm(file, { force: true });
    return `cannot be written (${code})`;
  }
}
