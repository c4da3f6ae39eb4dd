/** The clauses of specs/http.md that a client can see, each with its test, in the order in which they are tested. */
import type { Law } from "./Kit.ts"
import { accessLaws } from "./laws/AccessLaws.ts"
import { feedLaws } from "./laws/FeedLaws.ts"
import { followLaws } from "./laws/FollowLaws.ts"
import { promptLaws } from "./laws/PromptLaws.ts"
import { replayLaws } from "./laws/ReplayLaws.ts"
import { requestLaws } from "./laws/RequestLaws.ts"

export type { Law } from "./Kit.ts"

export const laws: ReadonlyArray<Law> = [
  ...accessLaws,
  ...requestLaws,
  ...promptLaws,
  ...replayLaws,
  ...followLaws,
  ...feedLaws
]
