// The tables of the firewall that iptables makes with the first rule of a kind, and leaves when the last one is gone: the
// kernel shows every packet of the machine to an empty one, too.

import { call } from './processes.mjs';

const TABLES = ['ip', 'ip6'].flatMap((family) => ['filter', 'mangle', 'nat'].map((name) => `${family} ${name}`));

/** Which of them are there; none where iptables is the kind that has no tables of nftables. */
export function firewallTables() {
  const all = call('nft', ['list', 'tables'], { mayFail: true }).split('\n');
  return TABLES.filter((table) => all.includes(`table ${table}`));
}

/** Removes those that were not there `before` and have nothing in them. */
export function removeEmptyTables(before) {
  for (const table of firewallTables()) {
    if (!before.includes(table) && isEmpty(table)) call('nft', ['delete', 'table', ...table.split(' ')]);
  }
}

/** Whether all of it are chains of the kernel that let everything pass. */
function isEmpty(table) {
  const listing = call('nft', ['list', 'table', ...table.split(' ')]);
  return /^table .* \{\n(\tchain \w+ \{\n\t\ttype .*; policy accept;\n\t\}\n\n?)*\}\n$/.test(listing);
}
