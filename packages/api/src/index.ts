/**
 * The public API of `@daybook/api`: the HTTP API, from which server, client and OpenAPI document are derived. Spec: specs/http.md.
 *
 * @module @daybook/api
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as OpenApi from "@effect/platform/OpenApi"
import { ChoicesApi, MachineApi, SearchApi, ServerApi } from "./group/ServerApi.ts"
import { EventsApi } from "./group/EventsApi.ts"
import { PermissionsApi, QuestionsApi, WorkApi } from "./group/WorkApi.ts"
import { SessionsApi, TranscriptApi } from "./group/SessionsApi.ts"

export * as Access from "./wire/Access.ts"
export * as Cursor from "./wire/Cursor.ts"
export * as EventFrames from "./wire/EventFrames.ts"
export * as Failure from "./wire/Failure.ts"

export const Api = HttpApi.make("daybook")
  .add(SessionsApi)
  .add(TranscriptApi)
  .add(WorkApi)
  .add(QuestionsApi)
  .add(PermissionsApi)
  .add(ChoicesApi)
  .add(SearchApi)
  .add(EventsApi)
  .add(MachineApi)
  .add(ServerApi)
  .annotate(OpenApi.Title, "Daybook")
  .annotate(OpenApi.Version, "1")
  .annotate(OpenApi.Description, "Durable sessions of AI agents: prompts, events, transcripts.")
