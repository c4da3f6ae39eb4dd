/** Defines the pages of session lists and transcripts. */
import type { House } from "../domain/Address.ts"
import { SessionID } from "../domain/Identifiers.ts"
import type { Message } from "../domain/Message.ts"

/** Selects sessions and a page of them. */
export interface ListOptions {
  /** Only sessions of this folder, whatever spelling of its path is given. */
  readonly directory?: string | undefined
  /** Part of the title or of a prompt's text, case-insensitive; at most 1,000 characters. */
  readonly search?: string | undefined
  /**
   * Only sessions of this agent or model in this scope. For an agent's private scope also sessions without an address.
   */
  readonly house?: House | undefined
  /** Default: 50; maximum: 500. */
  readonly limit?: number | undefined
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined
}

/** One page of a list. */
export interface Page<A> {
  readonly items: ReadonlyArray<A>
  /** Present if more follow. */
  readonly cursor?: string
}

/** Selects a page of a transcript. */
export interface MessagesOptions {
  readonly sessionID: SessionID
  /** Default: 50; maximum: 500. */
  readonly limit?: number | undefined
  /** Default: `asc`, oldest first. */
  readonly order?: "asc" | "desc" | undefined
  /**
   * The page starts after the message with this sequence number (before it, for `desc`). Any sequence number is valid:
   * to read around a message, request the pages before and after its `seq`.
   */
  readonly cursor?: number | undefined
}

/** One page of a transcript. */
export interface MessagePage {
  readonly items: ReadonlyArray<Message>
  /** Number of messages of the session. */
  readonly total: number
  /** Present if more follow. */
  readonly cursor?: number
}
