// Values that are the same for many clients, kept once: most clients have the grants, scopes and lifetimes of others.

import type { Client } from '../oauth/client.ts';

/** So many different ones are known; then it begins anew, and what was handed out stays what it is. */
const MOST_KNOWN = 20_000;

export class SharedValues {
  readonly #known = new Map<string, unknown>();

  /** The same client, made of what others have too. */
  sharing(client: Client): Client {
    const { grantTypes, redirectUris, allowedCorsOrigins, scopes, defaultScopes } = client;
    const { audiences, resourceServerAudiences, tokens } = client;
    return {
      ...client,
      grantTypes: this.#list(grantTypes),
      // Their own, but where there are none.
      redirectUris: redirectUris.length === 0 ? NONE : redirectUris,
      allowedCorsOrigins: allowedCorsOrigins.length === 0 ? NONE : allowedCorsOrigins,
      scopes: this.#list(scopes),
      defaultScopes: this.#list(defaultScopes),
      audiences: this.#list(audiences),
      resourceServerAudiences: this.#list(resourceServerAudiences),
      tokens: this.#shared(Object.values(tokens).join(' '), tokens),
    };
  }

  #list(values: readonly string[]): readonly string[] {
    return values.length === 0 ? NONE : this.#shared(values.join('\n'), values);
  }

  #shared<Value>(key: string, value: Value): Value {
    const known = this.#known.get(key);
    if (known !== undefined) return known as Value;
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(key, value);
    return value;
  }
}

const NONE: readonly string[] = [];
