// What a one-node cluster changes in the network of the machine, and puts back: the node's address, forwarding, the rules
// that let pods out. kube-proxy keeps rules of its own, in chains that begin with KUBE-; the tables of all of them are in
// firewall-tables.mjs.

import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { firewallTables, removeEmptyTables } from './firewall-tables.mjs';
import { ADDRESSES, inState, NODE_ADDRESS, POD_NETWORK } from './layout.mjs';
import { call, succeeds } from './processes.mjs';

const COMMENT = ['-m', 'comment', '--comment', 'grantry-cluster'];
const RULES = [
  { table: 'filter', chain: 'FORWARD', rule: ['-s', ADDRESSES.pods, ...COMMENT, '-j', 'ACCEPT'] },
  { table: 'filter', chain: 'FORWARD', rule: ['-d', ADDRESSES.pods, ...COMMENT, '-j', 'ACCEPT'] },
  {
    table: 'nat',
    chain: 'POSTROUTING',
    rule: ['-s', ADDRESSES.pods, '!', '-d', ADDRESSES.all, ...COMMENT, '-j', 'MASQUERADE'],
  },
];
/** kube-proxy sets the second one for node ports on the loopback address. */
const SETTINGS = ['ip_forward', 'conf/all/route_localnet'].map((name) => join('/proc/sys/net/ipv4', name));
const SAVED_SETTINGS = inState('network-settings.json');
const SAVED_TABLES = inState('firewall-tables.json');

/** Whether another Kubernetes has its rules on this machine: two would overwrite each other's. */
export function hasOthersRules() {
  return succeeds('iptables', ['-w', '-t', 'nat', '-S', 'KUBE-SERVICES']);
}

export function openNetwork() {
  const before = Object.fromEntries(SETTINGS.map((file) => [file, readFileSync(file, 'utf8')]));
  writeFileSync(SAVED_SETTINGS, JSON.stringify(before));
  writeFileSync(SAVED_TABLES, JSON.stringify(firewallTables()));
  for (const file of SETTINGS) writeFileSync(file, '1');
  if (!call('ip', ['address', 'show', 'dev', 'lo']).includes(`${NODE_ADDRESS}/`)) {
    call('ip', ['address', 'add', `${NODE_ADDRESS}/32`, 'dev', 'lo']);
  }
  // First in their chain: Docker, for one, ends the chain for what it does not know.
  for (const { table, chain, rule } of RULES) call('iptables', ['-w', '-t', table, '-I', chain, ...rule]);
}

/** Removes everything that was set up, even in part; `kubeProxy` removes the chains that it made. */
export function closeNetwork(kubeProxy) {
  if (kubeProxy !== undefined) call(kubeProxy, ['--cleanup'], { mayFail: true });
  removeFirewall();
  for (const { table, chain, rule } of RULES) {
    while (succeeds('iptables', ['-w', '-t', table, '-D', chain, ...rule]));
  }
  call('ip', ['address', 'delete', `${NODE_ADDRESS}/32`, 'dev', 'lo'], { mayFail: true });
  removePluginState();
  if (existsSync(SAVED_TABLES)) removeEmptyTables(JSON.parse(readFileSync(SAVED_TABLES, 'utf8')));
  if (!existsSync(SAVED_SETTINGS)) return;
  const before = JSON.parse(readFileSync(SAVED_SETTINGS, 'utf8'));
  for (const [file, value] of Object.entries(before)) writeFileSync(file, value);
}

/** A chain that kube-proxy makes, for node ports on the loopback address, and leaves. */
function removeFirewall() {
  const chain = 'KUBE-FIREWALL';
  for (const program of ['iptables', 'ip6tables']) {
    const jumps = ['INPUT', 'OUTPUT'].map((from) => ['-D', from, '-j', chain]);
    for (const args of [...jumps, ['-F', chain], ['-X', chain]]) call(program, ['-w', ...args], { mayFail: true });
  }
}

/** What network plugins remember of each pod has a fixed place; the loopback's is named by the pod alone. */
function removePluginState() {
  const folder = '/var/lib/cni/results';
  if (!existsSync(folder)) return;
  const names = readdirSync(folder);
  const pods = names.flatMap((name) => name.match(`^${POD_NETWORK}-(\\w+)-`)?.[1] ?? []);
  for (const name of names) {
    if (pods.some((pod) => name.includes(pod))) rmSync(join(folder, name));
  }
  call('rmdir', ['--ignore-fail-on-non-empty', folder, dirname(folder)], { mayFail: true });
}
