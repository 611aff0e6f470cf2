// Mutual TLS as a process needs it: the verifier of client certificates, where the public port has them from, the TLS of the
// listener, and the files behind them. The decoder of certificates is imported here, and only where this is configured.

import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { type CertificateSource, headerCertificates, NO_CERTIFICATES } from '../../http/mtls/certificate-source.ts';
import { TrustedProxies } from '../../http/server/client-address.ts';
import {
  mutualTlsSettings,
  replaceCertificate,
  requireUsable,
  type ServerCertificate,
  type TlsSettings,
} from '../../http/server/tls.ts';
import { CertificateAuthorities } from '../../oauth/client-certificates/certificate-authorities.ts';
import {
  CertificateVerifier,
  type CertificateVerifierOptions,
} from '../../oauth/client-certificates/certificate-verifier.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { MtlsSettings } from '../config/mtls-config.ts';
import { StartError } from '../config/start-error.ts';
import { FollowedFiles } from './followed-files.ts';

const REFRESH_MILLISECONDS = 60_000;

export interface MutualTlsOptions {
  readonly settings: MtlsSettings;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'info' | 'error'>;
}

export class MutualTls {
  readonly settings: MtlsSettings;
  readonly verifier: CertificateVerifier;
  /** Where the public port has client certificates from. */
  readonly publicCertificates: CertificateSource;
  readonly #log: MutualTlsOptions['log'];
  #files: readonly FollowedFiles[] = [];
  #authorities: CertificateAuthorities | undefined;
  #own: ServerCertificate | undefined;
  #server: FastifyInstance | undefined;
  #timer: NodeJS.Timeout | undefined;

  private constructor(
    { settings, log }: MutualTlsOptions,
    verifierOptions: Omit<CertificateVerifierOptions, 'authorities'>,
  ) {
    this.settings = settings;
    this.#log = log;
    this.verifier = new CertificateVerifier({ ...verifierOptions, authorities: () => this.#authorities });
    this.publicCertificates = settings.header
      ? headerCertificates({ header: settings.header.name, proxies: new TrustedProxies(settings.header.proxies) })
      : NO_CERTIFICATES;
  }

  /** @throws StartError when no certificate could reach this process, or a file cannot be used */
  static async open(options: MutualTlsOptions): Promise<MutualTls> {
    const { listener, header } = options.settings;
    if (listener === undefined && header === undefined) {
      const message = 'GRANTRY_MTLS_URL is set, but no client certificate can arrive: set GRANTRY_MTLS_PORT or';
      throw new StartError(`${message} GRANTRY_CLIENT_CERT_HEADER`, 2);
    }
    const { asn1CertificateReader: reader } = await import('../../http/mtls/asn1-certificate-reader.ts');
    const mutualTls = new MutualTls(options, { reader, clock: options.clock });
    await mutualTls.#openFiles();
    return mutualTls;
  }

  /** The TLS of the listener; undefined without one. */
  get listenerTls(): TlsSettings | undefined {
    return this.#own && mutualTlsSettings(this.#own);
  }

  /** Follows the files until {@link stop}. @param server the listener, whose certificate is replaced */
  start(server: FastifyInstance | undefined): void {
    this.#server = server;
    this.#timer = setInterval(() => void this.refresh(), REFRESH_MILLISECONDS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Reads the files again. */
  async refresh(): Promise<void> {
    for (const files of this.#files) await files.refresh();
  }

  async #openFiles(): Promise<void> {
    const { listener, clientCaFile } = this.settings;
    const log = this.#log;
    const opening: Promise<FollowedFiles>[] = [];
    if (listener !== undefined) {
      const files = { GRANTRY_MTLS_CERT_FILE: listener.certificateFile, GRANTRY_MTLS_KEY_FILE: listener.keyFile };
      const use = ([certificate = '', key = '']: readonly string[]) => this.#useOwn({ certificate, key });
      opening.push(FollowedFiles.open({ files, use, log }));
    }
    if (clientCaFile !== undefined) {
      const use = ([text = '']: readonly string[]) => {
        this.#authorities = CertificateAuthorities.parse(text);
      };
      opening.push(FollowedFiles.open({ files: { GRANTRY_CLIENT_CA_FILE: clientCaFile }, use, log }));
    }
    this.#files = await Promise.all(opening);
  }

  #useOwn(own: ServerCertificate): void {
    requireUsable(own);
    if (this.#server !== undefined) replaceCertificate(this.#server.server, own);
    this.#own = own;
  }
}
