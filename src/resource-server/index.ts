// `grantry/resource-server`: checks access tokens at an API.

export type { AccessClaims } from '../oauth/resource/access-token.ts';
export type { RefusalCode } from '../oauth/resource/bearer-error.ts';
export type { BindingRule } from '../oauth/resource/sender-constraint.ts';
export type { Access } from './access.ts';
export { AccessDenied } from './access-denied.ts';
export type { ApiRequest, NodeRequest } from './api-request.ts';
export { type ProtectedHandler, protect } from './fetch-handler.ts';
export type { IntrospectionOptions, UnsignedRequest } from './introspection.ts';
export type { VerifierOptions } from './options.ts';
export type { ReplayStore } from './replays.ts';
export { createVerifier, type Needs, type Verifier } from './verifier.ts';
