// The user of the kubeconfig that the examples have for kubectl: kubelogin, where a test runs it.

import { parse } from 'yaml';

/** Where kubelogin listens in the examples. */
export const KUBELOGIN_ADDRESS = 'http://localhost:8000';

export interface KubeloginPlace {
  readonly program: string;
  /** Where it listens in place of {@link KUBELOGIN_ADDRESS}. */
  readonly address: string;
  /** The folder of the tokens that it keeps. */
  readonly tokens: string;
  /** The CA of an https issuer. */
  readonly certificateFile?: string;
}

interface ExecUser {
  readonly exec: { readonly command: string; readonly args: readonly string[] };
}

/**
 * As an entry of `users` in a kubeconfig. No browser is opened.
 * @param kubeconfig the text of the example, with the addresses of a test
 * @param more its last arguments
 */
export function kubeloginUser(kubeconfig: string, place: KubeloginPlace, ...more: readonly string[]): ExecUser {
  const { program, address, tokens, certificateFile } = place;
  const { users } = parse(kubeconfig) as {
    readonly users: readonly [{ readonly user: ExecUser }];
  };
  const { exec } = users[0].user;
  const here = [
    `--token-cache-dir=${tokens}`,
    `--listen-address=127.0.0.1:${new URL(address).port}`,
    '--skip-open-browser',
    ...(certificateFile === undefined ? [] : [`--certificate-authority=${certificateFile}`]),
  ];
  return { exec: { ...exec, command: program, args: [...exec.args, ...here, ...more] } };
}
