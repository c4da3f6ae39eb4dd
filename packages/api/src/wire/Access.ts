/** Says who calls: endpoints need a scope; tokens have one, for all sessions or one. Spec: HT-20..HT-24. */
import { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import * as HttpApiSecurity from "@effect/platform/HttpApiSecurity"
import { Context, Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { failures } from "./Failure.ts"

/** What a token permits; each scope includes those before it. */
export const Scope = Schema.Literal("read", "prompt", "admin")
export type Scope = typeof Scope.Type

/** The request has no token, or one that is not valid. */
export class Unauthorized extends Schema.TaggedError<Unauthorized>("@daybook/api/Unauthorized")("Unauthorized", {}) {
  override get message() {
    return "the request needs the header `authorization: Bearer TOKEN` with a valid token"
  }
}

/** The token is valid and does not permit this. */
export class Forbidden extends Schema.TaggedError<Forbidden>("@daybook/api/Forbidden")("Forbidden", {
  needs: Scope,
  /** The session that the token is for, if it is for one. */
  sessionID: Schema.optionalWith(SessionID, { exact: true })
}) {
  override get message() {
    return this.sessionID === undefined
      ? `the token does not have the scope ${this.needs}`
      : `the token is for ${this.sessionID} alone`
  }
}

/** The request names another host than the server, or a page of another origin sent it. */
export class SiteRefused extends Schema.TaggedError<SiteRefused>("@daybook/api/SiteRefused")("SiteRefused", {
  part: Schema.Literal("host", "origin")
}) {
  override get message() {
    return this.part === "host"
      ? "this server does not answer under the name in `host`; serve names further ones with --http-name"
      : "this server answers no page of another origin"
  }
}

/** The body is larger than the server reads, or it ended early. */
export class BodyTooLarge extends Schema.TaggedError<BodyTooLarge>("@daybook/api/BodyTooLarge")("BodyTooLarge", {
  /** Bytes. */
  most: Schema.Int
}) {
  override get message() {
    return `the body was not read: it may have ${this.most} bytes`
  }
}

/** The body is not JSON, or JSON that no endpoint takes. */
export class BodyUnreadable extends Schema.TaggedError<BodyUnreadable>("@daybook/api/BodyUnreadable")(
  "BodyUnreadable",
  {
    /** How the body exceeds a limit, or which type its header names. Absent: the body is not JSON. */
    details: Schema.optionalWith(Schema.String, { exact: true })
  }
) {
  override get message() {
    return `the body is ${this.details ?? "not JSON"}`
  }
}

/** Two readers could understand the request differently. */
export class RequestAmbiguous extends Schema.TaggedError<RequestAmbiguous>("@daybook/api/RequestAmbiguous")(
  "RequestAmbiguous",
  { details: Schema.String }
) {
  override get message() {
    return `the request is ambiguous: ${this.details}`
  }
}

/** There is no such endpoint. */
export class EndpointNotFound extends Schema.TaggedError<EndpointNotFound>("@daybook/api/EndpointNotFound")(
  "EndpointNotFound",
  {}
) {
  override get message() {
    return "there is no endpoint with this method and path; /reference lists them"
  }
}

/** The path has endpoints, and none with the method. */
export class MethodNotAllowed extends Schema.TaggedError<MethodNotAllowed>("@daybook/api/MethodNotAllowed")(
  "MethodNotAllowed",
  { allow: Schema.Array(Schema.String) }
) {
  override get message() {
    return `this path takes only ${this.allow.join(", ")}`
  }
}

/** The server was started without this. */
export class NotServed extends Schema.TaggedError<NotServed>("@daybook/api/NotServed")("NotServed", {
  what: Schema.Literal("search", "stats", "shells", "models")
}) {
  override get message() {
    return `this server has no ${this.what}`
  }
}

/** The host of the machine's live shells cannot be asked. */
export class ShellsUnavailable extends Schema.TaggedError<ShellsUnavailable>("@daybook/api/ShellsUnavailable")(
  "ShellsUnavailable",
  { details: Schema.String }
) {
  override get message() {
    return `the live shells cannot be listed: ${this.details}`
  }
}

/** The server failed, and its log says how. */
export class InternalError extends Schema.TaggedError<InternalError>("@daybook/api/InternalError")(
  "InternalError",
  {}
) {
  override get message() {
    return "the server failed; its log says how"
  }
}

/** The server ends: connect again, to it or to the next one. */
export class Stopping extends Schema.TaggedError<Stopping>("@daybook/api/Stopping")("Stopping", {}) {
  override get message() {
    return "the server ends; try again"
  }
}

/** The client sends more than the server permits. */
export class TooManyRequests extends Schema.TaggedError<TooManyRequests>("@daybook/api/TooManyRequests")(
  "TooManyRequests",
  { retryAfterSeconds: Schema.Int }
) {
  override get message() {
    return `too many requests; try again in ${this.retryAfterSeconds} seconds`
  }
}

/** What every endpoint can refuse with, besides arguments that do not fit. */
export const Refused = Schema.Union(Unauthorized, Forbidden, SiteRefused, Stopping, TooManyRequests, InternalError)
export type Refused = typeof Refused.Type

export interface Caller {
  readonly scope: Scope
  /** The only session that the caller may use; all by default. */
  readonly sessionID: SessionID | undefined
  /** When the token ends, in milliseconds since the epoch; never by default. */
  readonly expires: number | undefined
}

export class CurrentCaller extends Context.Tag("@daybook/api/CurrentCaller")<CurrentCaller, Caller>() {}

const bearer = HttpApiSecurity.bearer
const failure = Schema.Union(failures(Refused), HttpApiDecodeError)
const access = { failure, provides: CurrentCaller, security: { bearer } }

/** Endpoints that read. */
export class Reading extends HttpApiMiddleware.Tag<Reading>()("@daybook/api/Reading", access) {}
/** Endpoints that follow events. A stream is read for long, and does not count against the rate of its token. */
export class Following extends HttpApiMiddleware.Tag<Following>()("@daybook/api/Following", access) {}
/** Endpoints that prompt and answer. */
export class Prompting extends HttpApiMiddleware.Tag<Prompting>()("@daybook/api/Prompting", access) {}
/** Endpoints that change sessions and the server. */
export class Administering extends HttpApiMiddleware.Tag<Administering>()("@daybook/api/Administering", access) {}
