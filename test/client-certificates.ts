// Certificate authorities and certificates for tests, made by openssl: what a CA or a client would really hand over.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certificate with its key, both as PEM, and the paths of their files. */
export interface MadeCertificate {
  readonly certificate: string;
  readonly key: string;
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly der: Buffer;
}

export interface Wishes {
  /** As `openssl req -subj` reads it. */
  readonly subject?: string;
  /** Lines of an extension section, such as `subjectAltName=DNS:a.example`. */
  readonly extensions?: readonly string[];
  /** The signer; self-signed without one. */
  readonly issuer?: MadeCertificate;
  /** Arguments of `-newkey`. Default: EC P-256. */
  readonly newKey?: readonly string[];
  /** Further arguments of the command that signs. */
  readonly signing?: readonly string[];
  readonly days?: number;
}

const P256 = ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];

/** Makes certificates in a folder of its own. */
export class CertificateMaker {
  readonly folder = mkdtempSync(join(tmpdir(), 'grantry-certificates-'));
  #count = 0;

  /** An authority, which signs itself unless an issuer is named. */
  authority(subject = '/CN=Test CA', wishes: Wishes = {}): MadeCertificate {
    const extensions = ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign'];
    return this.make({ subject, extensions, ...wishes });
  }

  /** A certificate of a client, usable for that alone unless the wishes say otherwise. */
  client(issuer: MadeCertificate, wishes: Wishes = {}): MadeCertificate {
    return this.make({ subject: '/CN=client', extensions: ['extendedKeyUsage=clientAuth'], issuer, ...wishes });
  }

  make({ subject = '/', extensions = [], issuer, newKey = P256, signing = [], days = 30 }: Wishes): MadeCertificate {
    const name = `${++this.#count}`;
    const [certificateFile, keyFile] = [join(this.folder, `${name}.crt`), join(this.folder, `${name}.key`)];
    const extensionFile = join(this.folder, `${name}.ext`);
    writeFileSync(extensionFile, `${extensions.join('\n')}\n`);
    const request = join(this.folder, `${name}.csr`);
    this.#openssl(
      'req',
      '-utf8',
      '-newkey',
      ...newKey,
      '-nodes',
      '-keyout',
      keyFile,
      '-out',
      request,
      '-subj',
      subject,
    );
    const signer = issuer
      ? ['-CA', issuer.certificateFile, '-CAkey', issuer.keyFile, '-CAcreateserial']
      : ['-signkey', keyFile];
    this.#openssl(
      ...['x509', '-req', '-in', request, ...signer, '-out', certificateFile, '-days', `${days}`],
      ...['-extfile', extensionFile, ...signing],
    );
    return made(certificateFile, keyFile);
  }

  /** Another self-signed certificate of the key of this one. */
  renewed({ keyFile }: MadeCertificate, subject: string): MadeCertificate {
    const certificateFile = join(this.folder, `${++this.#count}.crt`);
    this.#openssl('req', '-x509', '-key', keyFile, '-subj', subject, '-days', '30', '-out', certificateFile);
    return made(certificateFile, keyFile);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }

  #openssl(...words: readonly string[]): void {
    execFileSync('openssl', words, { cwd: this.folder, stdio: 'pipe' });
  }
}

function made(certificateFile: string, keyFile: string): MadeCertificate {
  const certificate = readFileSync(certificateFile, 'utf8');
  const der = Buffer.from(certificate.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
  return { certificate, key: readFileSync(keyFile, 'utf8'), certificateFile, keyFile, der };
}
