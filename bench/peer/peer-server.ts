// The peer as a process: its arguments are the port and, where it has one, the Redis of its state.

import { Redis } from 'ioredis';
import { peerProvider } from './peer.ts';

const [port, redisUrl] = process.argv.slice(2);
const redis = redisUrl === undefined ? undefined : new Redis(redisUrl);
peerProvider(`http://127.0.0.1:${port}`, redis).listen(Number(port), '127.0.0.1');
