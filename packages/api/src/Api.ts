/**
 * The HTTP API of Daybook: server, client and OpenAPI document are derived from it. Spec: specs/http.md.
 *
 * @module @daybook/api/Api
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as OpenApi from "@effect/platform/OpenApi"
import { ChoicesApi } from "./group/ChoicesApi.ts"
import { EventsApi } from "./group/EventsApi.ts"
import { MachineApi } from "./group/MachineApi.ts"
import { PermissionsApi } from "./group/PermissionsApi.ts"
import { QuestionsApi } from "./group/QuestionsApi.ts"
import { SearchApi } from "./group/SearchApi.ts"
import { ServerApi } from "./group/ServerApi.ts"
import { SessionsApi } from "./group/SessionsApi.ts"
import { TranscriptApi } from "./group/TranscriptApi.ts"
import { WorkApi } from "./group/WorkApi.ts"

/** All endpoints. */
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
