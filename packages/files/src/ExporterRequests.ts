/** Defines the requests to an export thread, and the messages that it sends unasked. Spec: FI-117..FI-119 in specs/files.md. */
import { LogLevel, Schema } from "effect"
import { LogUnavailable, SessionNotFound } from "@daybook/log/log/EventLog"
import { ExportError, ExportThreadEnded, Finding, RootBusy, RootOfAnotherStore, RootUnusable } from "./layout/Errors.ts"
import { optional } from "@daybook/log/support/Optional"

export const Exported = Schema.Struct({
  position: Schema.Int,
  sessions: Schema.Int,
  /** The number of sessions whose files a rebuild left as they are; a finding says why. */
  left: optional(Schema.Int)
})
export type Exported = typeof Exported.Type

const Readers = Schema.Literal("owner", "group", "everyone")
const SharedSpace = Schema.Struct({
  agents: optional(Schema.Array(Schema.String)),
  read: Readers,
  write: optional(Readers),
  group: optional(Schema.Int)
})

/** The errors of a start: the errors of a root, and what prevents the thread from reading the database. */
export const OpenError = Schema.Union(RootBusy, RootOfAnotherStore, RootUnusable, LogUnavailable, ExportThreadEnded)
export type OpenError = typeof OpenError.Type

/** Opens the database and takes the root; the first request. */
export class Open extends Schema.TaggedRequest<Open>()("Open", {
  failure: OpenError,
  success: Schema.Void,
  payload: {
    filename: Schema.String,
    root: Schema.String,
    uid: optional(Schema.Int),
    shared: optional(Schema.Record({ key: Schema.String, value: SharedSpace }))
  }
}) {}

export class CatchUp extends Schema.TaggedRequest<CatchUp>()("CatchUp", {
  failure: ExportError,
  success: Exported,
  payload: {}
}) {}

export class ExportSession extends Schema.TaggedRequest<ExportSession>()("ExportSession", {
  failure: Schema.Union(ExportError, SessionNotFound),
  success: Schema.Void,
  payload: { sessionID: Schema.String }
}) {}

export class Rebuild extends Schema.TaggedRequest<Rebuild>()("Rebuild", {
  failure: Schema.Union(ExportError, SessionNotFound),
  success: Exported,
  payload: { sessionID: optional(Schema.String) }
}) {}

export class Reached extends Schema.TaggedRequest<Reached>()("Reached", {
  failure: Schema.Never,
  success: Schema.Void,
  payload: { position: Schema.Number }
}) {}

export class Position extends Schema.TaggedRequest<Position>()("Position", {
  failure: ExportError,
  success: Schema.Int,
  payload: {}
}) {}

const signal = { failure: Schema.Never, success: Schema.Void, payload: {} }

/** Starts to follow; returns immediately. */
export class Follow extends Schema.TaggedRequest<Follow>()("Follow", signal) {}

/** Wakes the loop after a commit. */
export class Ring extends Schema.TaggedRequest<Ring>()("Ring", signal) {}

/** Stops following; returns when the current batch has ended. */
export class Unfollow extends Schema.TaggedRequest<Unfollow>()("Unfollow", signal) {}

const Level = Schema.Literal(...LogLevel.allLevels.map(({ _tag }) => _tag))

export const ThreadNews = Schema.Union(
  Schema.TaggedStruct("Logged", { level: Level, message: Schema.String }),
  Schema.TaggedStruct("Found", { finding: Finding })
)
export type ThreadNews = typeof ThreadNews.Type

/** What the thread says, until it ends. */
export class Listen extends Schema.TaggedRequest<Listen>()("Listen", {
  failure: Schema.Never,
  success: ThreadNews,
  payload: {}
}) {}

export const Request = Schema.Union(
  Open,
  CatchUp,
  ExportSession,
  Rebuild,
  Reached,
  Position,
  Follow,
  Ring,
  Unfollow,
  Listen
)
export type Request = typeof Request.Type
