/** Answers searches. Spec: HT-39 in specs/http.md. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Api } from "@daybook/api"
import { NotServed } from "@daybook/api/wire/Access"
import type { Search } from "@daybook/log/search/Search"

type SearchService = typeof Search.Service

/** How long a search waits for the index. `behind` of its result counts the events that are missing then. */
const patience = "500 millis"

/** Searches with the service, if there is one. */
export const layer = (search: SearchService | undefined) => {
  const searching = <A, E>(use: (service: SearchService) => Effect.Effect<A, E>) =>
    search === undefined
      ? new NotServed({ what: "search" })
      : Effect.zipRight(Effect.timeoutOption(search.update(), patience), use(search))
  return HttpApiBuilder.group(Api, "search", (handlers) =>
    handlers
      .handle("search", ({ urlParams }) => searching((service) => service.search(urlParams)))
      .handle("prompts", ({ urlParams }) => searching((service) => service.prompts(urlParams)))
  )
}
