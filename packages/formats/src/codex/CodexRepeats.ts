/**
 * Tells a prompt from its repetition. A rollout has a person's message as a response item, as an event, or as both; which
 * of them differs between versions of Codex. Spec: FM-154 in specs/formats.md.
 */
import type { Content } from "../conversation/Conversation.ts"
import { textOf } from "./CodexContent.ts"
import { userMessageOf } from "./CodexPrompt.ts"

/** The kinds of records that have a person's message. */
export type Kind = "message" | "user_message" | "item_completed"

interface Said {
  readonly text: string
  /** A prompt of several parts: an event lacks those that Codex added, such as marks around a picture. */
  readonly isBundle: boolean
  readonly kinds: Set<Kind>
}

export interface CodexRepeats {
  /** Whether a record of another kind has said this since the last answer. */
  readonly isRepeated: (kind: Kind, content: Content) => boolean
  /** The model answers: what comes later repeats nothing from before. */
  readonly answered: () => void
}

/** A person sends few messages before an answer; older ones are forgotten. */
const maxSaid = 16

const isWithin = (text: string, said: Said): boolean => said.isBundle && said.text.includes(text)

export const make = (): CodexRepeats => {
  let earlier: Array<Said> = []
  return {
    isRepeated: (kind, content) => {
      const shown = textOf(content)
      const said: Said = {
        text: shown.replace(/\s+/g, ""),
        isBundle: content.length > 1 && userMessageOf(shown).is === "prompt",
        kinds: new Set([kind])
      }
      const same = earlier.find(
        (before) =>
          !before.kinds.has(kind) &&
          (before.text === said.text || isWithin(said.text, before) || isWithin(before.text, said))
      )
      same?.kinds.add(kind)
      if (same === undefined) earlier = [...earlier.slice(1 - maxSaid), said]
      return same !== undefined
    },
    answered: () => {
      earlier = []
    }
  }
}
