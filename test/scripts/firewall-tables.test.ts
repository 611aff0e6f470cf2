// What `scripts/cluster down` leaves of a machine's firewall, tried in a network of its own, whose firewall is new.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const MODULE = join(import.meta.dirname, '../../scripts/one-node/firewall-tables.mjs');

/** Runs lines of a shell one after the other; answers what they print. @throws where one of them fails */
function inNewNetwork(...lines: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('unshare', ['--net', 'sh', '-ec', lines.join('\n')], {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin`, NODE: process.execPath },
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

/** Whether this person and this machine can have one. */
function canTry(): boolean {
  try {
    inNewNetwork('iptables-nft --version', 'nft list tables');
    return true;
  } catch {
    return false;
  }
}

const UP = `before=$("$NODE" --eval 'import("${MODULE}").then((all) => console.log(JSON.stringify(all.firewallTables())))')`;
const DOWN = `"$NODE" --eval "import('${MODULE}').then((all) => all.removeEmptyTables($before))"`;
const LIST = 'nft list tables';

/** A rule comes and goes. */
function passing(program: string, ...rule: readonly string[]): readonly string[] {
  const [table, chain, ...rest] = rule;
  return ['-A', '-D'].map((action) => `${program} -t ${table} ${action} ${chain} ${rest.join(' ')}`);
}

const OURS = [
  ...passing('iptables-nft', 'nat', 'POSTROUTING', '-j', 'MASQUERADE'),
  ...passing('iptables-nft', 'filter', 'FORWARD', '-j', 'ACCEPT'),
  ...passing('iptables-nft', 'filter', 'INPUT', '-j', 'ACCEPT'),
  'iptables-nft -t mangle -N KUBE-PROXY-CANARY',
  'iptables-nft -t mangle -X KUBE-PROXY-CANARY',
  ...passing('ip6tables-nft', 'nat', 'OUTPUT', '-j', 'ACCEPT'),
];

it.skipIf(!canTry())('the tables that rules of a cluster have made go with it', () => {
  expect(inNewNetwork(UP, ...OURS, LIST)).toBe('table ip nat\ntable ip filter\ntable ip mangle\ntable ip6 nat\n');
  expect(inNewNetwork(UP, ...OURS, DOWN, 'nft list ruleset')).toBe('');
});

it.skipIf(!canTry()).each([
  ['was there before', passing('iptables-nft', 'nat', 'OUTPUT', '-j', 'ACCEPT'), [], 'table ip nat\n'],
  ['has a rule of its owner', [], ['iptables-nft -t nat -A OUTPUT -j ACCEPT'], 'table ip nat\n'],
  ['has a chain of its owner', [], ['iptables-nft -t filter -N theirs'], 'table ip filter\n'],
  ['lets nothing pass', [], ['ip6tables-nft -P INPUT DROP'], 'table ip6 filter\n'],
  ['is of another program', [], ['nft add table ip theirs'], 'table ip theirs\n'],
])('a table that %s stays', (_, before, meanwhile, left) => {
  expect(inNewNetwork(...before, UP, ...OURS, ...meanwhile, DOWN, LIST)).toBe(left);
});
