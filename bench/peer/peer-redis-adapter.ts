// The peer's state in Redis, after the pattern that it publishes for ioredis: a hash for what can be used up, a string for
// all else, and for each grant the list of what was issued under it.

import type { Redis } from 'ioredis';
import type { Adapter, AdapterPayload } from 'oidc-provider';

const USED_UP = new Set(['AuthorizationCode', 'RefreshToken', 'DeviceCode', 'BackchannelAuthenticationRequest']);
const OF_A_GRANT = new Set([...USED_UP, 'AccessToken']);
const PREFIX = 'oidc:';

/** Makes the adapter of each of the peer's models. */
export function peerRedisAdapter(redis: Redis): (model: string) => Adapter {
  return (model) => new PeerRedisAdapter(model, redis);
}

class PeerRedisAdapter implements Adapter {
  readonly #model: string;
  readonly #redis: Redis;

  constructor(model: string, redis: Redis) {
    this.#model = model;
    this.#redis = redis;
  }

  async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const key = this.#key(id);
    const text = JSON.stringify(payload);
    const writes = this.#redis.multi();
    if (USED_UP.has(this.#model)) writes.hset(key, { payload: text });
    else writes.set(key, text);
    if (expiresIn) writes.expire(key, expiresIn);
    if (OF_A_GRANT.has(this.#model) && payload.grantId) {
      const ofGrant = grantKey(payload.grantId);
      writes.rpush(ofGrant, key);
      const left = await this.#redis.ttl(ofGrant);
      if (expiresIn > left) writes.expire(ofGrant, expiresIn);
    }
    for (const index of [payload.userCode && userCodeKey(payload.userCode), payload.uid && uidKey(payload.uid)]) {
      if (index) writes.set(index, id, 'EX', expiresIn);
    }
    await writes.exec();
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    if (!USED_UP.has(this.#model)) {
      const text = await this.#redis.get(this.#key(id));
      return text === null ? undefined : (JSON.parse(text) as AdapterPayload);
    }
    const { payload, ...rest } = await this.#redis.hgetall(this.#key(id));
    return payload === undefined ? undefined : { ...rest, ...(JSON.parse(payload) as AdapterPayload) };
  }

  async findByUid(uid: string): Promise<AdapterPayload | undefined> {
    return await this.#findBy(uidKey(uid));
  }

  async findByUserCode(userCode: string): Promise<AdapterPayload | undefined> {
    return await this.#findBy(userCodeKey(userCode));
  }

  async consume(id: string): Promise<void> {
    await this.#redis.hset(this.#key(id), 'consumed', Math.floor(Date.now() / 1000));
  }

  async destroy(id: string): Promise<void> {
    await this.#redis.del(this.#key(id));
  }

  async revokeByGrantId(grantId: string): Promise<void> {
    const issued = await this.#redis.lrange(grantKey(grantId), 0, -1);
    await this.#redis.multi().del(issued).del(grantKey(grantId)).exec();
  }

  async #findBy(index: string): Promise<AdapterPayload | undefined> {
    const id = await this.#redis.get(index);
    return id === null ? undefined : await this.find(id);
  }

  #key(id: string): string {
    return `${PREFIX}${this.#model}:${id}`;
  }
}

function grantKey(grantId: string): string {
  return `${PREFIX}grant:${grantId}`;
}

function uidKey(uid: string): string {
  return `${PREFIX}uid:${uid}`;
}

function userCodeKey(userCode: string): string {
  return `${PREFIX}userCode:${userCode}`;
}
