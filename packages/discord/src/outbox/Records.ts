/** The records of the outbox, as it returns them. Spec: DI-10..DI-13, DI-40, DI-44 in specs/discord.md. */
import type { MessageID } from "@daybook/log/domain/Identifiers"
import type { Delivery } from "@daybook/log/domain/Values"
import type { Body, Target } from "../post/Post.ts"

/** A message that Discord does not show as it should be. */
export interface DuePost {
  readonly id: number
  readonly nonce: string
  readonly body: Body
  /** The body of an attempt to create it whose result is unknown. */
  readonly attempt: Body | undefined
  /** Every message that the attempt may have made is later than this one. */
  readonly anchor: string | undefined
  /** Its id, if it exists. */
  readonly message: string | undefined
  readonly target: Target | undefined
}

/** A message that begins a thread. */
export interface Beginning {
  readonly channel: string
  readonly message: string
  readonly target: Extract<Target, { readonly type: "begin" }>
}

/** A permission that the bot asks for. */
export interface Asking {
  readonly channel: string
  readonly target: Extract<Target, { readonly type: "permission" }>
}

/** A reaction that Discord does not show as it should be. */
export interface DueReaction {
  readonly message: string
  readonly emoji: string | null
  readonly shown: string | null
}

/** A channel or thread that the bot reads. */
export interface Place {
  readonly channel: string
  readonly parent: string | null
  /** The last message that was handled. */
  readonly last: string | null
  /** Why nothing can be posted there. */
  readonly problem: string | null
  /** 1: it was deleted. */
  readonly closed: number
}

/** The replacement of a waiting prompt by that of its edited message. */
export interface Edit {
  readonly message: string
  readonly channel: string
  /** The prompt to withdraw. */
  readonly former: MessageID
  readonly delivery: Delivery
}
