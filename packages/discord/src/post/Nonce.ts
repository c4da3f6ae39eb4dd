/**
 * Gives each post a nonce: Discord creates no second message with the same nonce and author within a few minutes. Spec:
 * DI-10 in specs/discord.md.
 */
import { createHash } from "node:crypto"

/** What a post is: a part of what one event of one session published. */
export interface PostKey {
  readonly sessionID: string
  /** The event's id, or the name of a question that is not an event. */
  readonly event: string
  /** Counts the messages that one event needs. */
  readonly chunk: number
}

/** A nonce that depends on the post alone: 24 characters, where Discord permits 25. */
export const nonceOf = ({ chunk, event, sessionID }: PostKey): string =>
  createHash("sha256")
    .update(JSON.stringify([sessionID, event, chunk]))
    .digest("base64url")
    .slice(0, 24)
