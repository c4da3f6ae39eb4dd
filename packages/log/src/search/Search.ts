/**
 * Searches the texts of all sessions: prompts, answers, reasoning, tool calls and results. Contract; the implementation
 * is `SqlSearch.ts`. Spec: specs/storage.md.
 *
 * @module @daybook/log/search/Search
 */
import { Context, type Effect, Schema } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import type { InvalidInput } from "../domain/InvalidInput.ts"
import { AnyNumber } from "../domain/Json.ts"
import type { LogUnavailable } from "../log/EventLog.ts"
import { Page } from "../store/Pages.ts"
import { Role } from "./Document.ts"
import { optional } from "../support/Optional.ts"

export { Role } from "./Document.ts"

/** What to search, and which page of the result. */
export const SearchOptions = Schema.Struct({
  /** Words, `"phrases"`, `prefix*`, `-excluded` and filters (SE-30); at most 1,000 characters. */
  query: Schema.String,
  /** The folder that a relative `cwd:` is relative to. Default: the process's folder. */
  directory: Schema.optional(Schema.String),
  /** Sessions in a page. Default: 10; maximum: 100. */
  limit: Schema.optional(AnyNumber),
  /** The cursor of the previous page, with the same query. */
  cursor: Schema.optional(Schema.String)
})
export type SearchOptions = typeof SearchOptions.Type

export const SearchHit = Schema.Struct({
  /** The sequence number of its event in the session. */
  seq: Schema.Int,
  role: Role,
  tool: optional(Schema.String),
  /** `provider/model` of the answer it belongs to. */
  model: optional(Schema.String),
  /** Milliseconds since the epoch. */
  created: Schema.Int,
  /** The text around the first matches, on one line; a shortened side ends in `…`. */
  snippet: Schema.String,
  /** The matches in `snippet`: start and end of each, in UTF-16 code units. */
  marks: Schema.Array(Schema.Tuple(Schema.Int, Schema.Int)),
  /** Grows with relevance and recency (SE-40). */
  score: Schema.Finite
})
export type SearchHit = typeof SearchHit.Type

/** The matches of one session. */
export const SearchedSession = Schema.Struct({
  sessionID: SessionID,
  title: optional(Schema.String),
  directory: Schema.String,
  matches: Schema.Int,
  /** The best of them, at most three, the best first. */
  hits: Schema.Array(SearchHit)
})
export type SearchedSession = typeof SearchedSession.Type

export const SearchPage = Schema.Struct({
  ...Page(SearchedSession).fields,
  /** More texts match than were ranked: the older ones are missing (SE-41). */
  truncated: Schema.Boolean,
  /** Positions of the log that are not indexed yet. */
  behind: Schema.Int
})
export type SearchPage = typeof SearchPage.Type

export const PromptsOptions = Schema.Struct({
  words: Schema.optional(Schema.String),
  /** Only prompts of sessions in this folder, by its canonical path. */
  directory: Schema.optional(Schema.String),
  /** Default: 50; maximum: 1,000. */
  limit: Schema.optional(AnyNumber),
  /** The cursor of the previous page. */
  cursor: Schema.optional(Schema.String)
})
export type PromptsOptions = typeof PromptsOptions.Type

/** A prompt that a person typed, without space around it. */
export const PastPrompt = Schema.Struct({
  sessionID: SessionID,
  seq: Schema.Int,
  /** Milliseconds since the epoch. */
  created: Schema.Int,
  directory: Schema.String,
  /** At most 65,536 characters. */
  text: Schema.String
})
export type PastPrompt = typeof PastPrompt.Type

export const PromptsPage = Page(PastPrompt)
export type PromptsPage = typeof PromptsPage.Type

export const SearchProgress = Schema.Struct({
  position: Schema.Int,
  head: Schema.Int
})
export type SearchProgress = typeof SearchProgress.Type

export interface UpdateOptions {
  readonly gently?: boolean
  /** Called after each step. */
  readonly onProgress?: (progress: SearchProgress) => Effect.Effect<void>
}

/** What `Search` offers. */
export interface Service {
  /**
   * One page of the sessions whose indexed texts match, the best first (SE-40). `InvalidInput` says what is wrong with
   * the query or the cursor; `LogUnavailable`: the log or the index cannot be read.
   */
  readonly search: (options: SearchOptions) => Effect.Effect<SearchPage, InvalidInput | LogUnavailable>
  /** The prompts of people, the newest first, without repetitions in a row (SE-50). */
  readonly prompts: (options?: PromptsOptions) => Effect.Effect<PromptsPage, InvalidInput | LogUnavailable>
  /** Indexes what the log has and the index has not (SE-3). Several processes may do so at once. */
  readonly update: (options?: UpdateOptions) => Effect.Effect<SearchProgress, LogUnavailable>
  /** Empties the index and builds it again from the log (SE-5). */
  readonly rebuild: (options?: UpdateOptions) => Effect.Effect<SearchProgress, LogUnavailable>
  readonly progress: Effect.Effect<SearchProgress, LogUnavailable>
}

/**
 * Searches the texts of all sessions.
 *
 * @example
 * ```ts
 * import { Search } from "@daybook/log"
 * import { Effect } from "effect"
 *
 * // The sessions that contain these words, the best first.
 * export const find = Effect.fn(function* (query: string) {
 *   const search = yield* Search.Search
 *   yield* search.update()
 *   return yield* search.search({ query })
 * })
 * ```
 */
export class Search extends Context.Tag("@daybook/log/Search")<Search, Service>() {}
