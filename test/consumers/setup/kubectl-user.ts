// The user of the kubeconfig that the examples have for kubectl: kubelogin, where a test runs it.

import { parse } from 'yaml';
import type { Addresses, Examples } from './examples.ts';

/** Where kubelogin listens in the examples. */
export const KUBELOGIN_ADDRESS = 'http://localhost:8000';

export interface KubeloginPlace {
  readonly program: string;
  /** With one for {@link KUBELOGIN_ADDRESS}. */
  readonly addresses: Addresses;
  /** The folder of the tokens that it keeps. */
  readonly tokens: string;
  /** The CA of an https issuer. */
  readonly certificateFile?: string;
}

interface ExecUser {
  readonly exec: { readonly command: string; readonly args: readonly string[] };
}

/** As an entry of `users` in a kubeconfig. No browser is opened, and `more` arguments are the last. */
export function kubeloginUser(examples: Examples, place: KubeloginPlace, ...more: readonly string[]): ExecUser {
  const { program, addresses, tokens, certificateFile } = place;
  const { users } = parse(examples.file('kubernetes/kubeconfig.yaml', addresses)) as {
    readonly users: readonly [{ readonly user: ExecUser }];
  };
  const { exec } = users[0].user;
  const here = [
    `--token-cache-dir=${tokens}`,
    `--listen-address=127.0.0.1:${new URL(addresses[KUBELOGIN_ADDRESS] ?? '').port}`,
    '--skip-open-browser',
    ...(certificateFile === undefined ? [] : [`--certificate-authority=${certificateFile}`]),
  ];
  return { exec: { ...exec, command: program, args: [...exec.args, ...here, ...more] } };
}
