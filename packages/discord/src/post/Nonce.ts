/**
 * Gives each post a nonce: Discord creates no second message with the same nonce and author within a few minutes. Spec:
 * DC-10 in specs/discord.md.
 */
import { createHash } from "node:crypto"

/** What a post is: a part of what one event of one session published. */
export interface PostKey {
  readonly sessionID: string
  /** The sequence number of the event, or of the first event of what the post shows. */
  readonly seq: number
  /** Counts the messages that one event needs. */
  readonly chunk: number
}

/** A nonce that depends on the post alone: 24 characters, where Discord permits 25. */
export const nonceOf = ({ chunk, seq, sessionID }: PostKey): string =>
  createHash("sha256")
    .update(JSON.stringify([sessionID, seq, chunk]))
    .digest("base64url")
    .slice(0, 24)
