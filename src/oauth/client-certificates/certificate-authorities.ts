// The certificate authorities that clients' certificates come from. A leaf must be issued directly by one of them: no
// path is built, because a resumed TLS session has the leaf and no chain.

import { X509Certificate } from 'node:crypto';
import { RecentValues } from '../values/recent-values.ts';

/** An authority with its dates, in epoch milliseconds. */
export interface Authority {
  readonly x509: X509Certificate;
  readonly notBefore: number;
  readonly notAfter: number;
}

const RESULTS_KEPT = 1_000;
const PEM = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** The authorities of one file. Immutable: a changed file is a new object, and every leaf is verified again. */
export class CertificateAuthorities {
  readonly #authorities: readonly Authority[];
  readonly #issuers = new RecentValues<readonly Authority[]>(RESULTS_KEPT);

  private constructor(authorities: readonly Authority[]) {
    this.#authorities = authorities;
  }

  /** @param text PEM certificates; text between them is ignored. @throws Error with what is wrong, without any of it */
  static parse(text: string): CertificateAuthorities {
    const blocks = text.match(PEM) ?? [];
    if (blocks.length === 0) throw new Error('holds no PEM certificate');
    return new CertificateAuthorities(blocks.map((block, index) => authorityIn(block, index + 1)));
  }

  /**
   * The authorities whose key has signed this leaf and whose name it has as its issuer; empty for a stranger's.
   * @param thumbprint of the leaf: the result is kept under it
   */
  issuersOf(leaf: X509Certificate, thumbprint: string): readonly Authority[] {
    const known = this.#issuers.get(thumbprint);
    if (known !== undefined) return known;
    const found = this.#authorities.filter(({ x509 }) => leaf.checkIssued(x509) && leaf.verify(x509.publicKey));
    this.#issuers.set(thumbprint, found);
    return found;
  }
}

function authorityIn(pem: string, place: number): Authority {
  let x509: X509Certificate;
  try {
    x509 = new X509Certificate(pem);
  } catch {
    throw new Error(`has a certificate ${place} that cannot be read`);
  }
  if (!x509.ca) throw new Error(`has a certificate ${place} that is not one of an authority`);
  return { x509, notBefore: x509.validFromDate.getTime(), notAfter: x509.validToDate.getTime() };
}
