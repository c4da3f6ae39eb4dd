/** Reads and changes the state of sessions, and reads what a session holds and what the model was shown of it. Spec: HT-1 in specs/http.md. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema, Struct } from "effect"
import { PriceUnknown } from "@daybook/core/domain/RunFailure"
import { NothingShown, ShownRequest } from "@daybook/core/request/ShownRequest"
import { RunError } from "@daybook/core/runner/RunError"
import * as Options from "@daybook/core/session/SessionOptions"
import { Address, House } from "@daybook/log/domain/Address"
import { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { AddressTaken, TitleAmbiguous } from "@daybook/log/domain/Title"
import { TodoItem, SessionMetrics, Budget, Location, ModelRef } from "@daybook/log/domain/Values"
import { MessageNotFound, TreePage } from "@daybook/log/domain/HistoryPath"
import { AppendError, EventUnreadable, LogUnavailable, SessionNotFound } from "@daybook/log/log/EventLog"
import { MessagePage, Page } from "@daybook/log/store/Pages"
import { StoreError } from "@daybook/log/store/StoreError"
import { Administering, Prompting, Reading } from "../wire/Access.ts"
import { Message, Session } from "../wire/EventFrames.ts"
import { failures } from "../wire/Failure.ts"
import {
  bySession,
  ChangeFailure,
  changes,
  count,
  EventsFailure,
  gets,
  ReadFailure,
  reads,
  strict,
  text
} from "./Shared.ts"

// What a session holds: messages, context, tree, todos, and what the model was shown.

const NamedPage = Schema.Struct({ ...MessagePage.fields, items: Schema.Array(Message) })

/** Transcripts, trees, todos and recorded requests. */
export const TranscriptApi = HttpApiGroup.make("transcript")
  .annotate(OpenApi.Description, "Read messages, the model's context, and recorded requests.")
  .add(
    HttpApiEndpoint.get("messages", "/sessions/:sessionID/messages")
      .setPath(bySession)
      .setUrlParams(
        strict(
          Schema.Struct({
            limit: count,
            order: Schema.optional(Schema.Literal("asc", "desc")),
            cursor: count,
            branch: Schema.optional(Schema.Literal("path", "all"))
          })
        )
      )
      .addSuccess(NamedPage)
      .addError(ReadFailure)
      .middleware(Reading)
  )
  .add(
    HttpApiEndpoint.get("message", "/sessions/:sessionID/messages/:messageID")
      .setPath(Schema.Struct({ ...bySession.fields, messageID: MessageID }))
      .addSuccess(Schema.NullOr(Message))
      .addError(ReadFailure)
      .middleware(Reading)
  )
  .add(reads("context", "/sessions/:sessionID/context", Schema.Array(Message)))
  .add(
    reads("tree", "/sessions/:sessionID/tree", TreePage).setUrlParams(
      strict(Schema.Struct({ limit: count, cursor: count }))
    )
  )
  .add(reads("todos", "/sessions/:sessionID/todos", Schema.Array(TodoItem)))
  .add(
    HttpApiEndpoint.get("request", "/sessions/:sessionID/request")
      .setPath(bySession)
      .setUrlParams(strict(Schema.Struct({ at: count })))
      .addSuccess(ShownRequest)
      .addError(failures(NothingShown))
      .addError(failures(RunError))
      .addError(EventsFailure)
      .middleware(Reading)
  )

const creating = failures(Schema.Union(InvalidInput, AddressTaken, ...AppendError.members, ...StoreError.members))
const naming = failures(Schema.Union(InvalidInput, TitleAmbiguous, ...AppendError.members, ...StoreError.members))
const placing = failures(AddressTaken)
const labelling = failures(Schema.Union(MessageNotFound, EventUnreadable))
const listing = failures(Schema.Union(InvalidInput, ...StoreError.members))

/** What bounds the requests of a session on this server. */
export const SessionLimits = Schema.Struct({
  /** The context window of its model in tokens; absent if it is not known. */
  contextTokens: Schema.optionalWith(Schema.Int, { exact: true }),
  /** The configuration's budget, for a session without a parent and without its own budget. */
  budget: Schema.optionalWith(Budget, { exact: true })
}).annotations({ identifier: "SessionLimits" })
export type SessionLimits = typeof SessionLimits.Type

/** As JSON. */
const house = Schema.optional(Schema.parseJson(House))

export const SessionsApi = HttpApiGroup.make("sessions")
  .annotate(OpenApi.Description, "Create sessions, find them, change and remove them.")
  .add(
    HttpApiEndpoint.post("create", "/sessions")
      .setPayload(strict(Options.CreateOptions))
      .addSuccess(Session, { status: 201 })
      .addError(creating)
      .middleware(Prompting)
  )
  .add(
    HttpApiEndpoint.post("named", "/sessions/named")
      .setPayload(strict(Options.NamedOptions))
      .addSuccess(Options.NamedSession)
      .addError(naming)
      .middleware(Prompting)
  )
  .add(
    HttpApiEndpoint.post("addressed", "/sessions/addressed")
      .setPayload(strict(Schema.Struct({ address: Address })))
      .addSuccess(Schema.NullOr(Session))
      .addError(listing)
      .middleware(Reading)
  )
  .add(
    gets("list", "/sessions", Page(Session), listing).setUrlParams(
      strict(Schema.Struct({ directory: text, search: text, house, limit: count, cursor: text }))
    )
  )
  .add(HttpApiEndpoint.get("active", "/sessions/active").addSuccess(Schema.Array(SessionID)).middleware(Reading))
  .add(gets("interrupted", "/sessions/interrupted", Schema.Array(Session), failures(StoreError)))
  .add(gets("waiting", "/sessions/waiting", Schema.Array(Session), failures(StoreError)))
  .add(reads("get", "/sessions/:sessionID", Session))
  .add(reads("usage", "/sessions/:sessionID/usage", Options.SessionUsage))
  .add(reads("limits", "/sessions/:sessionID/limits", SessionLimits))
  .add(reads("metrics", "/sessions/:sessionID/metrics", SessionMetrics))
  .add(changes("rename", "/sessions/:sessionID/title", Schema.Struct({ title: Schema.String })).middleware(Prompting))
  .add(
    changes("switchAgent", "/sessions/:sessionID/agent", Schema.Struct({ agent: Schema.String })).middleware(
      Administering
    )
  )
  .add(changes("switchModel", "/sessions/:sessionID/model", ModelRef).middleware(Administering))
  .add(changes("move", "/sessions/:sessionID/location", Location).middleware(Administering))
  .add(
    changes("place", "/sessions/:sessionID/placement", Options.Placement).addError(placing).middleware(Administering)
  )
  .add(
    changes("setBudget", "/sessions/:sessionID/budget", Budget)
      .addError(failures(PriceUnknown))
      .middleware(Administering)
  )
  .add(
    HttpApiEndpoint.put("label", "/sessions/:sessionID/labels/:messageID")
      .setPath(Schema.Struct({ ...bySession.fields, messageID: Schema.String }))
      .setPayload(strict(Schema.Struct(Struct.pick(Options.LabelOptions.fields, "label"))))
      .addError(ChangeFailure)
      .addError(labelling)
      .middleware(Prompting)
  )
  .add(
    HttpApiEndpoint.del("remove", "/sessions/:sessionID")
      .setPath(bySession)
      .addError(failures(Schema.Union(SessionNotFound, LogUnavailable)))
      .middleware(Administering)
  )
