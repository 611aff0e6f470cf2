// An install of its own for the guide on programs that sign people in: an https issuer behind an ingress, a person, and the examples
// in examples/consumers/ as they stand. Only addresses, the authority of certificates and the class of this second install differ.

import { parse, parseAllDocuments } from 'yaml';
import { hashPassword } from '../../../src/login/local/local-users.ts';
import { fillIn } from '../../clients/person.ts';
import { EXAMPLE_ISSUER, Examples } from '../../consumers/setup/examples.ts';
import { Visitor } from '../../consumers/setup/visitor.ts';
import { type Ingress, startIngress } from './ingress.ts';
import {
  apply,
  createNamespace,
  deleteNamespaces,
  eventually,
  find,
  type KubernetesObject,
  kubectl,
  OURS,
  OURS_LABEL,
} from './kubectl.ts';
import { Release } from './release.ts';

const PASSWORD = 'correct horse battery';
const className = 'identity';

/** A program behind the same ingress. */
export interface ProgramAddress {
  /** That of the examples. */
  readonly shown: string;
  /** Its Service, as an http origin. */
  readonly upstream: string;
}

export class IdentityInstall {
  readonly #release = new Release({ namespace: 'e2e-identity', name: 'identity' });
  readonly #examples = new Examples();
  readonly #addresses: Record<string, string>;
  readonly #namespaces: string[] = [];
  #ingress: Ingress | undefined;

  /** @param addresses of the examples' programs that no ingress leads to */
  constructor(addresses: Readonly<Record<string, string>>) {
    this.#addresses = { ...addresses };
  }

  /** Installs it, and waits until the issuer answers. */
  async start(programs: readonly ProgramAddress[]): Promise<void> {
    const { namespace, url } = this.#release;
    await createNamespace(namespace);
    this.#ingress = await startIngress(namespace, [url, ...programs.map(({ upstream }) => upstream)]);
    const names = [EXAMPLE_ISSUER, ...programs.map(({ shown }) => shown)];
    for (const [index, origin] of this.#ingress.origins.entries()) this.#addresses[names[index] ?? ''] = origin;
    this.#addresses['PASTE-A-HASH-HERE'] = await hashPassword(PASSWORD);
    const people = this.objects('people.yaml');
    await apply(...people.map((each) => ({ ...each, metadata: { ...each.metadata, namespace } })));
    await this.#release.install({
      ...(parse(this.file('values.yaml')) as object),
      className,
      crds: { enabled: false },
      redis: { dev: { enabled: true } },
      server: { replicas: 1 },
      controller: { replicas: 1 },
      // An Ingress is for a name; this issuer is an address, so that no DNS has to know it.
      ingress: { enabled: false },
      config: { trustedProxies: [this.#ingress.address] },
      networkPolicy: { from: [{ podSelector: { matchLabels: this.#ingress.labels } }] },
    });
    await this.untilAnswers(`${this.issuer}/.well-known/openid-configuration`);
  }

  /** A namespace of an example, and of a ClientPolicy with its name. @throws where either is there already and no test made it */
  async createNamespace(name: string, standard?: 'baseline'): Promise<void> {
    for (const kind of ['namespace', 'clientpolicy']) {
      if ((await find(kind, name)) !== undefined) throw new Error(`the ${kind} ${name} is not of this suite`);
    }
    this.#namespaces.push(await createNamespace(name, standard));
  }

  /** The text of a file of the examples, at the addresses of this install. */
  file(name: string): string {
    return this.#examples.file(name, this.#addresses);
  }

  /** The objects of a file of the examples. */
  objects(name: string): readonly KubernetesObject[] {
    return parseAllDocuments(this.file(name)).map((document) => {
      const object = document.toJS() as KubernetesObject;
      const { apiVersion, metadata, spec } = object;
      if (!apiVersion.startsWith('grantry.dev/')) return object;
      return { ...object, metadata: { ...metadata, labels: OURS_LABEL }, spec: { ...spec, className } };
    });
  }

  get issuer(): string {
    return this.address(EXAMPLE_ISSUER);
  }

  /** Where a program is reached. @param shown its address in the examples */
  address(shown: string): string {
    const address = this.#addresses[shown];
    if (address === undefined) throw new Error(`${shown} has no address yet`);
    return address;
  }

  /** What signed the certificate of the ingress. */
  get authority(): Ingress['authority'] {
    if (this.#ingress === undefined) throw new Error('the ingress was not started');
    return this.#ingress.authority;
  }

  /** The person of the examples in a new browser. */
  newVisitor(): Visitor {
    const { issuer } = this;
    return new Visitor({
      issuer,
      authority: this.authority.certificate,
      endpoints: { endSession: `${issuer}/logout` },
      answerTo: (page) => fillIn(page, { username: 'ada', password: PASSWORD, decision: 'allow' }),
    });
  }

  /** Waits for a 200. */
  async untilAnswers(address: string): Promise<void> {
    await eventually(`${address} answers`, async () => {
      const arrival = await this.newVisitor()
        .visit(address)
        .catch(() => undefined);
      return arrival?.page.status === 200;
    });
  }

  /** Uninstalls it, and removes the namespaces and what tests of this suite made for the whole cluster. */
  async remove(): Promise<void> {
    this.#ingress?.forget();
    if (await this.#release.isInstalled()) await this.#release.uninstall();
    await kubectl('delete', 'clientpolicies,clusterrolebindings', '-l', OURS);
    await deleteNamespaces(this.#release.namespace, ...this.#namespaces);
  }
}
