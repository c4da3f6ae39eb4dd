/** What waits for a person: questions of models, and permissions of tools. Spec: HT-1, HT-37 in specs/http.md. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { PendingQuestion, QuestionClosed, QuestionRef } from "@daybook/core/domain/Question"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { Prompting } from "../wire/Access.ts"
import { failures } from "../wire/Failure.ts"
import { AppendFailure, strict } from "./Shared.ts"
import { reads } from "./Shapes.ts"

const byCall = Schema.Struct(QuestionRef.fields)
const closing = failures(Schema.Union(InvalidInput, QuestionClosed))

/** Open questions, and their answers. */
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
