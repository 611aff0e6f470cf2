// The two questions of the controller to a replica, on the admin port: what it serves, and what its clients met with. Each
// has to prove that the controller asks it. The answers hold no name of a person, no address, and no text from any request.

import { z } from 'zod';
import type { Alert } from '../../oauth/ports/audit.ts';
import { OAuthError } from '../../oauth/ports/error.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';

/** So many uids, or ids of alerts, are taken in one request. So many uids fit into the largest body; alerts have longer ids. */
export const IDS_PER_REQUEST = 1000;

/** A uid, the id of an alert, or a cursor: of ours each is shorter by far. */
const id = z.string().regex(/^[\x21-\x7e]{1,128}$/);
const ids = z.array(id).max(IDS_PER_REQUEST);

const OBSERVED_REQUEST = z.strictObject({ uids: ids });
const REPORT_REQUEST = z.strictObject({ after: id.optional(), acknowledged: ids.optional() });

/** `POST /registry/observed`: the OAuthClients, by uid, that the controller asks about. */
export type ObservedRequest = z.infer<typeof OBSERVED_REQUEST>;

/** What a replica serves at this moment. */
export interface ObservedAnswer {
  /** By uid, without those it has not judged: absent or of another class. */
  readonly clients: Readonly<Record<string, ObservedClient>>;
  /** Every key in its JWKS. */
  readonly keyIds: readonly string[];
}

export interface ObservedClient {
  /** `metadata.generation` that it has judged, whether it serves the client or refuses it. */
  readonly generation: number;
  /** `revision` of the verifier Secret whose verifiers it accepts; absent while it has none. */
  readonly secretRevision?: number;
}

/**
 * `POST /registry/report`. `after`: the cursor of this replica's last answer; absent, or one of a process that is gone:
 * everything. `acknowledged`: ids of alerts that need not be told again by anybody.
 */
export type ReportRequest = z.infer<typeof REPORT_REQUEST>;

/** What is new since the cursor. Repeatable: nothing is forgotten by being told. */
export interface ReportAnswer {
  /** To be sent as `after` next time. */
  readonly cursor: string;
  /** By uid: the day (`2026-01-31`, UTC) on which a client last got a token. */
  readonly lastUsed: Readonly<Record<string, string>>;
  /** By uid: each reason why requests of a client were refused. */
  readonly denied: Readonly<Record<string, readonly Denial[]>>;
  /** Alerts that no controller has acknowledged, of all replicas; empty while Redis does not answer. */
  readonly alerts: readonly ReportedAlert[];
}

export interface Denial {
  /**
   * The first two come from a client that proved who it is; `redirect_uri_mismatch` from anybody at all, so it may cost
   * no status write.
   */
  readonly reason: DenialReason;
  /**
   * `metadata.generation` of the client that was refused. Absent from a replica that cannot say, such as one of a version
   * before this member: then it is no news of the client as it is.
   */
  readonly generation?: number;
  /**
   * Since this replica started or, if later, since the client's generation changed or a pause of a day without any. Never
   * falls otherwise.
   */
  readonly count: number;
  /** RFC 3339. */
  readonly lastTime: string;
}

export type DenialReason = 'unauthorized_client' | 'invalid_scope' | 'redirect_uri_mismatch';

export interface ReportedAlert extends Pick<Alert, 'id' | 'type' | 'clientUid' | 'clientId' | 'action'> {
  /** RFC 3339. */
  readonly time: string;
}

/** One of the two, before anything in it is read. */
export interface AskedQuestion {
  readonly path: string;
  readonly body: Uint8Array;
  /** The header of that name. */
  readonly authorization: string | undefined;
}

/** Who answers. None throws for a well-formed request. */
export interface ReplicaAnswers {
  /** Why a question is not the controller's, as a slug; undefined when it is. */
  proofFault(question: AskedQuestion): string | undefined;
  observed(request: ObservedRequest): ObservedAnswer;
  report(request: ReportRequest): Promise<ReportAnswer>;
}

/** Both endpoints; JSON in and out. */
export function controllerEndpoints(answers: ReplicaAnswers): readonly Endpoint[] {
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
          const body = provenBody(exchange, observed, answers);
          send(exchange, answers.observed(parsed(body, OBSERVED_REQUEST)));
        },
      },
    },
    {
      route: 'registry_report',
      path: report,
      ...shared,
      handlers: {
        POST: async (exchange) => {
          const body = provenBody(exchange, report, answers);
          send(exchange, await answers.report(parsed(body, REPORT_REQUEST)));
        },
      },
    },
  ];
}

/** The body of a question that the controller asks. @throws OAuthError access_denied for anybody else's */
function provenBody({ request }: Exchange, path: string, answers: ReplicaAnswers): Uint8Array {
  const body = request.body instanceof Uint8Array ? request.body : new Uint8Array();
  const reason = answers.proofFault({ path, body, authorization: request.headers.authorization });
  if (reason === undefined) return body;
  throw new OAuthError('access_denied', 'Only the controller is answered.', { reason });
}

function parsed<Question>(body: Uint8Array, schema: z.ZodType<Question>): Question {
  const question = schema.safeParse(parsedJson(body));
  if (question.success) return question.data;
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
