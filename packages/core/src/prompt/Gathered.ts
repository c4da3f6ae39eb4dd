/** Shared state while one prompt's mentions are resolved: permissions, remaining room, and constructors of parts. */
import * as path from "node:path"
import { Effect } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { ExpandedPart, ToolContent } from "@daybook/log/domain/Values"
import type { Agent } from "../domain/Agent.ts"
import { verdictOf } from "../domain/Rule.ts"
import { ToolFailure } from "../domain/ToolError.ts"
import { dataUri } from "../picture/PictureContent.ts"
import type { PictureFitter } from "../picture/Pictures.ts"
import type { LocationFiles } from "../workspace/LocationFiles.ts"
import type { Reference } from "../workspace/References.ts"

/** Limits of one prompt's expansion (PX-14). */
export const limits = {
  /** Mentions and attachments that yield parts. */
  parts: 100,
  /** Mentions that are resolved. */
  mentions: 1_000,
  /** Lines of one file. */
  lines: 2_000,
  /** Text of all parts. */
  textBytes: 256 * 1024,
  /** One picture or document. */
  mediaBytes: 5 * 1024 * 1024,
  /** All pictures and documents. */
  totalMediaBytes: 20 * 1024 * 1024
} as const

/** The state for one prompt of one session. */
export interface Gathering {
  readonly sessionID: SessionID
  /** Canonical. */
  readonly directory: string
  /** True for a prompt written by a person. A model writes a task's prompt and cannot approve reads. */
  readonly byPerson: boolean
  /** The session's agent, whose rules decide; without it nothing is read. */
  readonly agent: Agent | undefined
  readonly agents: ReadonlyArray<Agent>
  readonly references: ReadonlyMap<string, Reference>
  readonly files: LocationFiles["Type"]
  readonly pictures: PictureFitter
  /** What is left of the limits. */
  readonly room: { text: number; media: number }
}

/** A part without its place in the text. A canonical part appears once, however often it is mentioned. */
export interface Gathered {
  readonly part: Omit<ExpandedPart, "source">
  readonly canonical: boolean
}

export const refuse = (type: string, message: string) => new ToolFailure({ type, message })

export const quoted = (name: string) => JSON.stringify(name.length > 300 ? `${name.slice(0, 300)}...` : name)

export const bytesOf = (count: number) => `${count.toLocaleString("en")} bytes`

const text = (value: string): ToolContent => ({ type: "text", text: value })

export const failed = (name: string, reason: string): Gathered => ({
  part: { kind: "failure", name, content: text(reason.length > 2_000 ? `${reason.slice(0, 2_000)}...` : reason) },
  canonical: false
})

/** A text part, if it fits the remaining room. */
export const gatherText = Effect.fnUntraced(function* (
  gathering: Gathering,
  kind: ExpandedPart["kind"],
  name: string,
  value: string,
  canonical = true
) {
  const size = Buffer.byteLength(value)
  if (size > gathering.room.text) {
    return yield* refuse(
      "prompt.tooLarge",
      `${quoted(name)} does not fit: the references of one prompt may have ${bytesOf(limits.textBytes)} of text`
    )
  }
  gathering.room.text -= size
  return { part: { kind, name, content: text(value) }, canonical } satisfies Gathered
})

/** Takes the size of one picture or document from the remaining room. */
export const takeMedia = Effect.fnUntraced(function* ({ room }: Gathering, name: string, size: number) {
  if (size > limits.mediaBytes) {
    return yield* refuse(
      "prompt.tooLarge",
      `${quoted(name)} has ${bytesOf(size)}; a picture or document may have ${bytesOf(limits.mediaBytes)}`
    )
  }
  if (size > room.media) {
    return yield* refuse(
      "prompt.tooLarge",
      `${quoted(name)} has ${bytesOf(size)}, which does not fit: the pictures and documents of one prompt may have ` +
        `${bytesOf(limits.totalMediaBytes)} together`
    )
  }
  room.media -= size
})

/**
 * A picture in a form that providers accept, if it fits. `kept` is the URI of its stored data, used if the picture is
 * unchanged.
 */
export const gatherPicture = Effect.fnUntraced(function* (
  gathering: Gathering,
  name: string,
  bytes: Uint8Array,
  kept?: string
) {
  const {
    bytes: fitted,
    mime,
    note
  } = yield* Effect.mapError(gathering.pictures.fit(bytes), ({ reason }) =>
    refuse("picture.refused", `the picture ${quoted(name)} cannot be shown: ${reason}`)
  )
  yield* takeMedia(gathering, name, fitted.length)
  const uri = fitted === bytes && kept !== undefined ? kept : dataUri(mime, fitted)
  const part: Gathered["part"] = {
    kind: "media",
    name,
    content: { type: "file", uri, mime, name: path.posix.basename(name) || name },
    ...(note === undefined ? {} : { note })
  }
  return part
})

/** Checks the rules of the session's agent. A person's mention counts as approval where the rules ask. */
export const mayRead = ({ agent, byPerson }: Gathering, resource: string): Effect.Effect<void, ToolFailure> => {
  if (agent === undefined) {
    return refuse("permission.denied", `${quoted(resource)} was not read: the session's agent is not known`)
  }
  const verdict = verdictOf(agent.permissions, "read", resource) ?? "ask"
  if (verdict === "allow" || (verdict === "ask" && byPerson)) return Effect.void
  return refuse(
    "permission.denied",
    verdict === "deny"
      ? `the rules of agent "${agent.name}" do not allow "read" on ${quoted(resource)}`
      : `${quoted(resource)} needs a person's approval; ask for it with the tool "read"`
  )
}
