/**
 * Work of a session: prompts, runs, branches, undo. A request that waits for work returns after some time even if the work goes
 * on: repeat it. Spec: HT-1, HT-13, HT-14 in specs/http.md.
 */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema, Struct } from "effect"
import { AgentNotFound } from "@daybook/core/domain/Agent"
import {
  BranchNotSummarized,
  BudgetExceeded,
  ModelResolutionError,
  PriceUnknown
} from "@daybook/core/domain/RunFailure"
import { RunError } from "@daybook/core/runner/RunError"
import { Answer, PromptUnanswered } from "@daybook/core/session/Answer"
import * as Options from "@daybook/core/session/SessionOptions"
import { NothingToRedo, NothingToUndo, RedoRefused } from "@daybook/core/session/SessionOptions"
import { MessageID } from "@daybook/log/domain/Identifiers"
import { ImportUnfinished } from "@daybook/log/domain/Imported"
import { InboxFullError, NotWaiting, PromptConflictError } from "@daybook/log/domain/InboxError"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { SessionBusy } from "@daybook/log/domain/SessionBusy"
import { MessageNotFound } from "@daybook/log/domain/HistoryPath"
import { EventUnreadable, LogUnavailable } from "@daybook/log/log/EventLog"
import { Prompting, Reading } from "../wire/Access.ts"
import { failures } from "../wire/Failure.ts"
import { Input, Session } from "../wire/Named.ts"
import { AppendFailure, strict, bySession, ChangeFailure, EventsFailure } from "./Shared.ts"
import { acts, reads, restores } from "./Shapes.ts"

const admitting = failures(Schema.Union(PromptConflictError, InboxFullError))
const branching = failures(Schema.Union(MessageNotFound, SessionBusy, EventUnreadable))
const summarizing = failures(
  Schema.Union(BranchNotSummarized, AgentNotFound, BudgetExceeded, PriceUnknown, ...ModelResolutionError.members)
)

/** A prompt for the session of the path. */
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

/** Prompts, runs and branches. */
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
