/** Defines the pages of session lists and transcripts. */
import { Chunk, Effect, Option, Schema, Stream } from "effect"
import { House } from "../domain/Address.ts"
import { SessionID } from "../domain/Identifiers.ts"
import { AnyNumber } from "../domain/Json.ts"
import { Message, Session } from "../domain/Message.ts"

export const ListOptions = Schema.Struct({
  /** Only sessions of this folder, whatever spelling of its path is given. */
  directory: Schema.optional(Schema.String),
  /** Part of the title or of a prompt's text, case-insensitive; at most 1,000 characters. */
  search: Schema.optional(Schema.String),
  /** Only sessions of this agent or model in this scope; in private scope also sessions without an address. */
  house: Schema.optional(House),
  /** Default: 50; maximum: 500. */
  limit: Schema.optional(AnyNumber),
  cursor: Schema.optional(Schema.String)
})
export type ListOptions = typeof ListOptions.Type

export const Page = <A, I, R>(item: Schema.Schema<A, I, R>) =>
  Schema.Struct({
    items: Schema.Array(item),
    cursor: Schema.optionalWith(Schema.String, { exact: true })
  })

export type Page<A> = Schema.Schema.Type<ReturnType<typeof Page<A, unknown, never>>>

export const SessionPage = Page(Session)
export type SessionPage = typeof SessionPage.Type

export const MessagesOptions = Schema.Struct({
  sessionID: SessionID,
  /** Default: 50; maximum: 500. */
  limit: Schema.optional(AnyNumber),
  /** Default: `asc`, oldest first. */
  order: Schema.optional(Schema.Literal("asc", "desc")),
  /**
   * The page starts after the message with this sequence number (before it, for `desc`). Any sequence number is valid:
   * to read around a message, request the pages before and after its `seq`.
   */
  cursor: Schema.optional(AnyNumber),
  /** Default: `path`, the messages of the history path. `all`: those of all branches. */
  branch: Schema.optional(Schema.Literal("path", "all"))
})
export type MessagesOptions = typeof MessagesOptions.Type

export const MessagePage = Schema.Struct({
  items: Schema.Array(Message),
  total: Schema.Int,
  /** Present if more follow. */
  cursor: Schema.optionalWith(Schema.Int, { exact: true })
})
export type MessagePage = typeof MessagePage.Type

/** The items of all pages. */
export const allItems = <A, Cursor, E, R>(
  read: (
    cursor: Cursor | undefined
  ) => Effect.Effect<{ readonly items: ReadonlyArray<A>; readonly cursor?: Cursor | undefined }, E, R>
): Stream.Stream<A, E, R> =>
  Stream.paginateChunkEffect(undefined as Cursor | undefined, (cursor) =>
    Effect.map(read(cursor), (page) => [Chunk.unsafeFromArray(page.items), Option.fromNullable(page.cursor)])
  )
