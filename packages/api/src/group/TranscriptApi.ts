/** What a session holds: messages, context, tree, todos, and what the model was shown. Spec: HT-1 in specs/http.md. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { NothingShown, ShownRequest } from "@daybook/core/request/ShownRequest"
import { RunError } from "@daybook/core/runner/RunError"
import { MessageID } from "@daybook/log/domain/Identifiers"
import { TodoItem } from "@daybook/log/domain/Values"
import { TreePage } from "@daybook/log/domain/HistoryPath"
import { MessagePage } from "@daybook/log/store/Pages"
import { Reading } from "../wire/Access.ts"
import { failures } from "../wire/Failure.ts"
import { Message } from "../wire/Named.ts"
import { bySession, count, EventsFailure, ReadFailure, strict } from "./Shared.ts"
import { reads } from "./Shapes.ts"

/** A page of messages. */
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
    HttpApiEndpoint.get("tree", "/sessions/:sessionID/tree")
      .setPath(bySession)
      .setUrlParams(strict(Schema.Struct({ limit: count, cursor: count })))
      .addSuccess(TreePage)
      .addError(ReadFailure)
      .middleware(Reading)
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
