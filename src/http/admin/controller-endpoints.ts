// The two endpoints that a replica offers the controller on the admin port: the objects it serves, and a report of
// client usage and alerts. Each request must prove that the controller sent it. The answers hold no name of a person,
// no address, and no text from any request.

import { z } from 'zod';
import type { ReportedRefusal } from '../../oauth/client-auth/reported-refusals.ts';
import type { Alert } from '../../oauth/ports/audit.ts';
import { OAuthError } from '../../oauth/ports/error.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';

/** The most uids in one request. */
export const IDS_PER_REQUEST = 1000;

/** A uid or a cursor; both are much shorter than the limit. */
const id = z.string().regex(/^[\x21-\x7e]{1,128}$/);

const OBSERVED_REQUEST = z.strictObject({ uids: z.array(id).max(IDS_PER_REQUEST) });
// Not strict: a controller of an earlier version acknowledges alerts.
const REPORT_REQUEST = z.object({ after: id.optional() });

/** `POST /registry/observed`: the uids of the OAuthClients and ProtectedResources that the controller asks about. */
export type ObservedRequest = z.infer<typeof OBSERVED_REQUEST>;

/** The state that a replica serves now. */
export interface ObservedAnswer {
  /** By uid, without the clients it has not validated: absent or of another class. */
  readonly clients: Readonly<Record<string, ObservedClient>>;
  /** By uid, without those it has not validated. `generation`: whether it serves the resource or refuses it. */
  readonly resources: Readonly<Record<string, { readonly generation: number }>>;
  /** Every key in its JWKS. */
  readonly keyIds: readonly string[];
}

export interface ObservedClient {
  /** `metadata.generation` that it has validated, whether it serves the client or refuses it. */
  readonly generation: number;
  /** `revision` of the verifier Secret whose verifiers it accepts; absent while it has none. */
  readonly secretRevision?: number;
}

/**
 * `POST /registry/report`. `after`: the cursor of this replica's last answer; absent, or one of a former process:
 * everything.
 */
export type ReportRequest = z.infer<typeof REPORT_REQUEST>;

/** The changes since the cursor. Repeatable: the same cursor gets them again. */
export interface ReportAnswer {
  /** To be sent as `after` next time. */
  readonly cursor: string;
  /** By uid: the day (`2026-01-31`, UTC) on which a client last got a token. */
  readonly lastUsed: Readonly<Record<string, string>>;
  /** By uid: each reason why requests of a client were refused, or answered without groups, and each type of alert. */
  readonly denied: Readonly<Record<string, readonly Denial[]>>;
  /** By uid: every IdentityProvider that it has validated, whether people can sign in by it or not. */
  readonly providers: Readonly<Record<string, ProviderReport>>;
  /** By uid: every Secret with users that is not served, or not as a whole. */
  readonly users: Readonly<Record<string, UsersReport>>;
  /** A controller of an earlier version reads no report without it. */
  readonly alerts: readonly [];
}

export interface ProviderReport {
  /** `metadata.generation` that it has validated. */
  readonly generation: number;
  /** Whether it has reached the source of this generation. */
  readonly reachable: boolean;
  /** `Reachable`, or why it is not: `NotObserved` before the first attempt has ended. */
  readonly reason: 'Reachable' | 'DiscoveryFailed' | 'IssuerMismatch' | 'NotObserved';
  /** Present where within the last hour a person signed in without groups, because they were too many for its answer. */
  readonly isOverage?: true;
}

/** A fault of a Secret with users. */
export interface UsersReport {
  /** Of the Secret, in the release namespace. */
  readonly name: string;
  /** Where the fault is; no text of the Secret. */
  readonly message: string;
}

export interface Denial {
  /**
   * All come from the client itself, which has authenticated or signed what is refused, but two, which may cost no status
   * write: `redirect_uri_mismatch` is of an unauthenticated request, and with `groups_omitted` none is refused. An alert
   * takes a token or a code that was issued to the client.
   */
  readonly reason: DenialReason;
  /**
   * `metadata.generation` of the client that was refused. Absent where the replica does not know it, e.g. in a version
   * before this member: then the denial does not concern the present generation.
   */
  readonly generation?: number;
  /**
   * The count since this replica started or, if later, since the client's generation changed or a day passed without
   * denials. It never falls otherwise.
   */
  readonly count: number;
  /** RFC 3339. */
  readonly lastTime: string;
}

export type DenialReason =
  | 'unauthorized_client'
  | 'invalid_scope'
  | ReportedRefusal
  | 'redirect_uri_mismatch'
  | 'groups_omitted'
  | Alert['type'];

/** A request to one of the two endpoints, before its body is parsed. */
export interface ControllerRequest {
  readonly path: string;
  readonly body: Uint8Array;
  /** The `Authorization` header. */
  readonly authorization: string | undefined;
}

/** The replica behind the endpoints. No method throws for a well-formed request. */
export interface ReplicaApi {
  /** Why a request is not proven to be the controller's, as a slug; undefined when it is. */
  proofFault(request: ControllerRequest): string | undefined;
  observed(request: ObservedRequest): ObservedAnswer;
  report(request: ReportRequest): ReportAnswer;
}

/** Both endpoints; JSON in and out. */
export function controllerEndpoints(replica: ReplicaApi): readonly Endpoint[] {
  const shared = { answers: 'json', body: 'json', cors: 'none', head: false } as const;
  const observed = '/registry/observed';
  const report = '/registry/report';
  return [
    {
      route: 'registry_observed',
      path: observed,
      ...shared,
      handlers: {
        POST: async (exchange) => {
          const body = provenBody(exchange, observed, replica);
          send(exchange, replica.observed(parsed(body, OBSERVED_REQUEST)));
        },
      },
    },
    {
      route: 'registry_report',
      path: report,
      ...shared,
      handlers: {
        POST: async (exchange) => {
          const body = provenBody(exchange, report, replica);
          send(exchange, replica.report(parsed(body, REPORT_REQUEST)));
        },
      },
    },
  ];
}

/** The body of a request of the controller. @throws OAuthError access_denied without its proof */
function provenBody({ request }: Exchange, path: string, replica: ReplicaApi): Uint8Array {
  const body = request.body instanceof Uint8Array ? request.body : new Uint8Array();
  const reason = replica.proofFault({ path, body, authorization: request.headers.authorization });
  if (reason === undefined) return body;
  throw new OAuthError('access_denied', 'Only the controller is answered.', { reason });
}

function parsed<Content>(body: Uint8Array, schema: z.ZodType<Content>): Content {
  const content = schema.safeParse(parsedJson(body));
  if (content.success) return content.data;
  throw new OAuthError('invalid_request', 'The request is malformed.', { reason: 'malformed_json' });
}

function parsedJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString());
  } catch {
    return undefined;
  }
}

function send({ reply }: Exchange, answer: object): void {
  reply.type('application/json; charset=utf-8').send(JSON.stringify(answer));
}
