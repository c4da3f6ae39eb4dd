/**
 * Work of a session, and what it waits for: prompts, runs, branches, undo; questions of models and permissions of
 * tools. A request that waits for work returns after some time even if the work goes on: repeat it. Spec: HT-1, HT-13,
 * HT-14, HT-37 in specs/http.md.
 */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema, Struct } from "effect"
import { AgentNotFound } from "@daybook/core/domain/Agent"
import {
  ModelResolutionError,
  BudgetExceeded,
  PriceUnknown,
  BranchNotSummarized
} from "@daybook/core/domain/RunFailure"
import { PendingQuestion, QuestionClosed, QuestionRef } from "@daybook/core/domain/Question"
import { PermissionSubject } from "@daybook/core/permission/PermissionSubject"
import { RunError } from "@daybook/core/runner/RunError"
import { Answer, PromptUnanswered } from "@daybook/core/session/Answer"
import * as Options from "@daybook/core/session/SessionOptions"
import { NothingToRedo, NothingToUndo, RedoRefused } from "@daybook/core/session/SessionOptions"
import { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { ImportUnfinished } from "@daybook/log/domain/Imported"
import { InboxFullError, NotWaiting, PromptConflictError } from "@daybook/log/domain/InboxError"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { SessionBusy } from "@daybook/log/domain/SessionBusy"
import { Location } from "@daybook/log/domain/Values"
import { MessageNotFound } from "@daybook/log/domain/HistoryPath"
import { EventUnreadable, LogUnavailable } from "@daybook/log/log/EventLog"
import { Administering, Prompting, Reading } from "../wire/Access.ts"
import { Input, Session } from "../wire/EventFrames.ts"
import { failures } from "../wire/Failure.ts"
import { acts, AppendFailure, bySession, ChangeFailure, EventsFailure, reads, restores, strict } from "./Shared.ts"

// What waits for a person: questions of models, and permissions of tools.

const byCall = Schema.Struct(QuestionRef.fields)
const closing = failures(Schema.Union(InvalidInput, QuestionClosed))

export const QuestionsApi = HttpApiGroup.make("questions")
  .annotate(OpenApi.Description, "Answer the questions of models.")
  .add(reads("questions", "/sessions/:sessionID/questions", Schema.Array(PendingQuestion)))
  .add(
    HttpApiEndpoint.post("answer", "/sessions/:sessionID/questions/:messageID/:callID/answer")
      .setPath(byCall)
      .setPayload(strict(Schema.Struct({ answers: Schema.Array(Schema.String) })))
      .addError(AppendFailure)
      .addError(closing)
      .middleware(Prompting)
  )
  .add(
    HttpApiEndpoint.post("dismissQuestion", "/sessions/:sessionID/questions/:messageID/:callID/dismiss")
      .setPath(byCall)
      .addError(AppendFailure)
      .addError(closing)
      .middleware(Prompting)
  )

// Tools that wait for a person's permission.

/** A permission that a call waits for. A person must see the whole permission. */
export const OpenPermission = Schema.Struct({
  /** Names it in an answer. */
  ask: Schema.String,
  sessionID: SessionID,
  sessionTitle: Schema.optionalWith(Schema.String, { exact: true }),
  callID: Schema.String,
  tool: Schema.String,
  agent: Schema.String,
  location: Location,
  /** The action: `edit`, `bash`, `external_directory` and so on. */
  permission: Schema.String,
  resources: Schema.NonEmptyArray(Schema.String),
  /** The action in a line; `subject` describes it completely. */
  title: Schema.String,
  subject: PermissionSubject,
  notes: Schema.Array(Schema.String),
  /** The patterns that `session` and `always` keep; empty: it can be given for one call only. */
  always: Schema.Array(Schema.String),
  /** Milliseconds since the epoch. */
  askedAt: Schema.Int,
  /** Milliseconds until it is refused without an answer; absent: it waits without a limit. */
  timeLeftMs: Schema.optionalWith(Schema.NonNegativeInt, { exact: true })
}).annotations({ identifier: "OpenPermission" })
export type OpenPermission = typeof OpenPermission.Type

/** `correct` refuses with a message for the model, and the run goes on; `decline` stops the run. */
export const Decision = Schema.Union(
  Schema.Struct({ decision: Schema.Literal("once", "session", "decline") }),
  Schema.Struct({
    decision: Schema.Literal("always"),
    /** Other patterns than the permission's. */
    resources: Schema.optionalWith(
      Schema.Array(Schema.String.pipe(Schema.maxLength(1_000))).pipe(Schema.maxItems(100)),
      {
        exact: true
      }
    )
  }),
  Schema.Struct({
    decision: Schema.Literal("correct"),
    message: Schema.NonEmptyString.pipe(Schema.maxLength(10_000))
  })
)
export type Decision = typeof Decision.Type

/** The permission was decided before, or its call has ended. */
export class PermissionClosed extends Schema.TaggedError<PermissionClosed>("@daybook/api/PermissionClosed")(
  "PermissionClosed",
  {
    ask: Schema.String,
    /** The decision that counts, if it is known. */
    decision: Schema.optionalWith(Schema.String, { exact: true })
  }
) {
  override get message() {
    const how = this.decision === undefined ? "" : ` (${this.decision})`
    return `no call waits for this permission${how}: it was decided before, or the call has ended`
  }
}

export const PermissionsApi = HttpApiGroup.make("permissions")
  .annotate(OpenApi.Description, "Decide whether tools may act. Permissions wait in memory: they are not events.")
  .add(
    HttpApiEndpoint.get("permissions", "/sessions/:sessionID/permissions")
      .setPath(bySession)
      .addSuccess(Schema.Array(OpenPermission))
      .middleware(Reading)
  )
  .add(
    HttpApiEndpoint.get("allPermissions", "/permissions").addSuccess(Schema.Array(OpenPermission)).middleware(Reading)
  )
  .add(
    HttpApiEndpoint.post("decide", "/sessions/:sessionID/permissions/:ask")
      .setPath(Schema.Struct({ ...bySession.fields, ask: Schema.String }))
      .setPayload(strict(Decision))
      .addError(failures(Schema.Union(InvalidInput, PermissionClosed)))
      .middleware(Administering)
  )

const admitting = failures(Schema.Union(PromptConflictError, InboxFullError))
const branching = failures(Schema.Union(MessageNotFound, SessionBusy, EventUnreadable))
const summarizing = failures(
  Schema.Union(BranchNotSummarized, AgentNotFound, BudgetExceeded, PriceUnknown, ...ModelResolutionError.members)
)

export const PromptPayload = Schema.Struct(Struct.omit(Options.PromptOptions.fields, "sessionID"))
/** Why a prompt is not admitted. */
export const PromptFailure = Schema.Union(ChangeFailure, admitting)

/** A session, and whether work was still running when the time of the request was over. */
export const Waited = Schema.Struct({ settled: Schema.Boolean, session: Session })
export type Waited = typeof Waited.Type

/** Names a resume, so that a later request can ask for its outcome. The caller makes it up. */
const resumeID = Schema.String.pipe(Schema.pattern(/^[A-Za-z0-9._-]{1,100}$/))

/** A value, or none yet: repeat the same request. */
export const Pending = Schema.Struct({ pending: Schema.Literal(true) })

export const WorkApi = HttpApiGroup.make("work")
  .annotate(OpenApi.Description, "Prompt, run, interrupt, branch and undo.")
  .add(
    acts("prompt", "/sessions/:sessionID/prompts")
      .setHeaders(Schema.Struct({ "idempotency-key": Schema.optional(Schema.String.pipe(Schema.maxLength(200))) }))
      .setPayload(strict(PromptPayload))
      .addSuccess(Input)
      .addError(admitting)
      .middleware(Prompting)
  )
  .add(reads("inbox", "/sessions/:sessionID/prompts", Schema.Array(Input)))
  .add(
    HttpApiEndpoint.del("withdraw", "/sessions/:sessionID/prompts/:messageID")
      .setPath(Schema.Struct({ ...bySession.fields, messageID: MessageID }))
      .addError(ChangeFailure)
      .addError(failures(NotWaiting))
      .middleware(Prompting)
  )
  .add(
    HttpApiEndpoint.post("ask", "/sessions/:sessionID/ask")
      .setPath(bySession)
      .setPayload(strict(Schema.Struct({ ...Struct.omit(Options.AskOptions.fields, "sessionID"), id: MessageID })))
      .addSuccess(Answer)
      .addSuccess(Pending, { status: 202 })
      .addError(failures(Schema.Union(InvalidInput, ImportUnfinished, PromptUnanswered)))
      .addError(admitting)
      .addError(failures(RunError))
      .addError(EventsFailure)
      .middleware(Prompting)
  )
  .add(reads("wait", "/sessions/:sessionID/wait", Waited))
  .add(
    HttpApiEndpoint.post("resume", "/sessions/:sessionID/resume")
      .setPath(bySession)
      .setUrlParams(strict(Schema.Struct({ id: Schema.optional(resumeID) })))
      .addSuccess(Waited)
      .addError(failures(RunError))
      .middleware(Prompting)
  )
  .add(
    HttpApiEndpoint.get("resumed", "/sessions/:sessionID/resumes/:id")
      .setPath(Schema.Struct({ ...bySession.fields, id: resumeID }))
      .addSuccess(Waited)
      .addError(failures(RunError))
      .middleware(Reading)
  )
  .add(
    HttpApiEndpoint.post("interrupt", "/sessions/:sessionID/interrupt")
      .setPath(bySession)
      .setPayload(strict(Options.InterruptOptions))
      .addError(failures(LogUnavailable))
      .middleware(Prompting)
  )
  .add(
    HttpApiEndpoint.post("settle", "/sessions/:sessionID/settle")
      .setPath(bySession)
      .addSuccess(Schema.Boolean)
      .addError(AppendFailure)
      .middleware(Prompting)
  )
  .add(acts("compact", "/sessions/:sessionID/compact").addSuccess(MessageID).middleware(Prompting))
  .add(acts("unprune", "/sessions/:sessionID/unprune").middleware(Prompting))
  .add(
    acts("branch", "/sessions/:sessionID/branch")
      .setPayload(strict(Schema.Struct(Struct.omit(Options.BranchOptions.fields, "sessionID"))))
      .addSuccess(Options.Branched)
      .addError(branching)
      .addError(summarizing)
      .middleware(Prompting)
  )
  .add(
    acts("fork", "/sessions/:sessionID/fork")
      .setPayload(strict(Schema.Struct(Struct.omit(Options.ForkOptions.fields, "sessionID"))))
      .addSuccess(Options.Forked, { status: 201 })
      .addError(failures(MessageNotFound))
      .addError(EventsFailure)
      .middleware(Prompting)
  )
  .add(
    acts("reset", "/sessions/:sessionID/reset").addSuccess(Options.Branched).addError(branching).middleware(Prompting)
  )
  .add(restores("undo", "/sessions/:sessionID/undo").addError(failures(NothingToUndo)))
  .add(restores("redo", "/sessions/:sessionID/redo").addError(failures(Schema.Union(NothingToRedo, RedoRefused))))
