/** Texts of all sessions. Spec: HT-39 in specs/http.md. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { LogUnavailable } from "@daybook/log/log/EventLog"
import { PromptsPage, SearchPage } from "@daybook/log/search/Search"
import { NotServed, Reading } from "../wire/Access.ts"
import { failures } from "../wire/Failure.ts"
import { count, strict, text } from "./Shared.ts"

const searching = failures(Schema.Union(InvalidInput, LogUnavailable, NotServed))

/** Search, and earlier prompts. */
export const SearchApi = HttpApiGroup.make("search")
  .annotate(OpenApi.Description, "Search the texts of all sessions.")
  .add(
    HttpApiEndpoint.get("search", "/search")
      .setUrlParams(strict(Schema.Struct({ query: Schema.String, directory: text, limit: count, cursor: text })))
      .addSuccess(SearchPage)
      .addError(searching)
      .middleware(Reading)
  )
  .add(
    HttpApiEndpoint.get("prompts", "/prompts")
      .setUrlParams(strict(Schema.Struct({ words: text, directory: text, limit: count, cursor: text })))
      .addSuccess(PromptsPage)
      .addError(searching)
      .middleware(Reading)
  )
