/**
 * Finds what to withhold after a server rejected a request because of its content: the parts that no accepted request had, by
 * kind, and up to three sets of them to try without. Pure. `Withholding.ts` shows the result to the model.
 * Spec: RQ-644..RQ-648.
 */
import type { MessageID } from "@daybook/log/domain/Identifiers"
import {
  type AssistantMessage,
  type Message,
  samePart,
  type ToolPart,
  type UserMessage,
  type Withheld,
  type WithheldKind
} from "@daybook/log/domain/Message"
import { type ModelRef, sameModel } from "@daybook/log/domain/Values"
import type { RejectedContent } from "../model/ContentRejection.ts"
import { mediaKind } from "../prompt/FilePart.ts"
import { isBlank } from "@daybook/log/support/Text"
import { nativeTo, type LoweringTarget } from "./Lowering.ts"
import { isPruned } from "./Prune.ts"
import { withheldFrom } from "./Withholding.ts"

export interface PartRef extends Omit<Withheld, "reason"> {
  readonly messageID: MessageID
}

/** Requests that a rejected one may cost. */
const maxTries = 3

/** The sets that are left to try for one rejection; `trying` is withheld now. */
export interface Trial {
  readonly kind: RejectedContent["kind"]
  readonly trying: ReadonlyArray<PartRef>
  readonly left: ReadonlyArray<ReadonlyArray<PartRef>>
  /** Requests since the last accepted one. */
  readonly count: number
}

/** What to store after a rejection: parts that are shown again, and parts that are withheld from now on. */
export interface Change {
  readonly shown: ReadonlyArray<PartRef>
  readonly withheld: ReadonlyArray<PartRef>
  /** Undefined: nothing can be repaired. */
  readonly trial: Trial | undefined
}

export interface RepairInput {
  /** The messages of the rejected request, oldest first. */
  readonly messages: ReadonlyArray<Message>
  readonly shown: LoweringTarget
  /** The prompts that opened the running work: their words, and those of prompts after them, are never withheld. */
  readonly opening: ReadonlyArray<MessageID>
  readonly rejected: RejectedContent
  /** The trial whose request was rejected. */
  readonly before: Trial | undefined
}

type PartPosition = Pick<PartRef, "callID" | "index" | "kind">

const isInline = ({ uri }: { readonly uri: string }): boolean => /^data:|^attachment:/i.test(uri)

const mediumAt = (file: { readonly uri: string; readonly mime: string }, index: number) => {
  const kind = isInline(file) ? mediaKind(file.mime) : undefined
  return kind === undefined ? [] : [{ index, kind }]
}

const inPrompt = ({ expansion, files = [], text }: UserMessage, isOwn: boolean): ReadonlyArray<PartPosition> => [
  ...(isOwn || isBlank(text) ? [] : [{ kind: "text" as const }]),
  ...(expansion === undefined
    ? files.flatMap(mediumAt)
    : expansion.parts.flatMap(({ content }, index): ReadonlyArray<PartPosition> =>
        content.type === "text" ? [{ index, kind: "text" }] : mediumAt(content, index)
      ))
]

const inResult = (part: ToolPart): ReadonlyArray<PartPosition> => {
  const content = part.content ?? []
  const media = content.flatMap((one, index) => (one.type === "file" ? mediumAt(one, index) : []))
  const hasText = part.state === "error" || content.some((one) => one.type === "text" && !isBlank(one.text))
  return [...(hasText || content.length === 0 ? [{ kind: "text" as const }] : []), ...media].map((found) => ({
    callID: part.id,
    ...found
  }))
}

const inAnswer = (message: AssistantMessage, { model, prunedSeq }: LoweringTarget): ReadonlyArray<PartPosition> => [
  ...(hasThought(message, model) ? [{ kind: "thinking" as const }] : []),
  ...message.content.flatMap((part) =>
    part.type === "tool" &&
    (part.state === "completed" || part.state === "error") &&
    part.provider?.executed !== true &&
    !isPruned(message, part, prunedSeq)
      ? inResult(part)
      : []
  )
]

/** Whether the model's server gets back what it sent with this answer: its thinking, or what it attached to the rest. */
const hasThought = (message: AssistantMessage, model: ModelRef): boolean =>
  nativeTo(message, model) &&
  message.content.some((part) =>
    part.type === "tool"
      ? part.provider?.metadata !== undefined
      : part.type === "reasoning" || part.providerMetadata !== undefined
  )

const found = (message: Message, shown: LoweringTarget, isOwn: boolean): ReadonlyArray<PartPosition> => {
  if (message.type === "user") return inPrompt(message, isOwn)
  if (message.type === "assistant") return inAnswer(message, shown)
  return message.type === "shell" ? [{ kind: "text" }] : []
}

/** The sequence number of the first prompt of the running work. */
const workFrom = ({ messages, opening }: RepairInput): number =>
  (messages.find(({ id }) => opening.includes(id)) ?? messages.findLast(({ type }) => type === "user"))?.seq ?? 0

const partsOf = (message: Message, { shown }: RepairInput, from: number): ReadonlyArray<PartRef> => {
  const { media, model } = shown
  const withheld = withheldFrom(message, model)
  const ref: ModelRef = { providerID: model.providerID, id: model.id }
  return found(message, shown, message.seq >= from)
    .map((part) => ({ messageID: message.id, ...part, model: ref }))
    .filter(({ kind }) => (kind !== "image" && kind !== "pdf") || media === undefined || media.includes(kind))
    .filter((part) => !withheld.some((other) => samePart(other, part)))
}

const anyVariant = (model: ModelRef): ModelRef => ({ ...model, variant: "any" })

/** An answer of this model: its request was accepted. */
const isAccepted = (message: Message, model: ModelRef): boolean =>
  message.type === "assistant" &&
  sameModel(anyVariant(message.model), anyVariant(model)) &&
  (message.error === undefined || message.content.length > 0)

const kinds: Readonly<Record<RejectedContent["kind"], ReadonlyArray<WithheldKind>>> = {
  image: ["image"],
  pdf: ["pdf"],
  media: ["image", "pdf"],
  text: ["text"],
  thinking: ["thinking"],
  unknown: ["image", "pdf", "text"]
}

/** The texts with the inputs of their calls: a refused text is often in both. */
const withInputs = (parts: ReadonlyArray<PartRef>): ReadonlyArray<PartRef> =>
  parts.flatMap((part): ReadonlyArray<PartRef> =>
    part.kind === "text" && part.callID !== undefined ? [part, { ...part, kind: "input" }] : [part]
  )

/** The parts to choose from, oldest first. What an accepted request had is innocent, unless nothing else is of the kind. */
const candidates = (input: RepairInput, { extent, kind }: RejectedContent): ReadonlyArray<PartRef> => {
  const { messages, shown } = input
  const accepted = messages.findLastIndex((message) => isAccepted(message, shown.model))
  const from = workFrom(input)
  const among = (some: ReadonlyArray<Message>) =>
    some.flatMap((message) => partsOf(message, input, from)).filter((part) => kinds[kind].includes(part.kind))
  const added = among(messages.slice(Math.max(accepted, 0)))
  const isMedia = kind === "image" || kind === "pdf" || kind === "media"
  return kind === "thinking" || (isMedia && (added.length === 0 || extent === "many")) ? among(messages) : added
}

/** The sets to try without, the most likely first. */
const setsOf = (parts: ReadonlyArray<PartRef>, { extent, kind }: RejectedContent) => {
  const half = Math.max(1, Math.floor(parts.length / 2))
  const [olderHalf, newerHalf] = [parts.slice(0, -half), parts.slice(-half)]
  const [others, newest, all] = [parts.slice(0, -1), parts.slice(-1), withInputs(parts)]
  const sets =
    extent === "all"
      ? [all]
      : extent === "many"
        ? [parts.slice(0, half), others, all]
        : kind === "unknown"
          ? [newerHalf, olderHalf, all]
          : [newest, kind === "text" ? withInputs(newest) : others, all]
  return sets.filter((set, at) => set.length > 0 && sets.findIndex((other) => isSame(set, other)) === at)
}

const isSame = (a: ReadonlyArray<PartRef>, b: ReadonlyArray<PartRef>): boolean =>
  a.length === b.length && a.every((part, at) => part === b[at])

const without = (parts: ReadonlyArray<PartRef>, others: ReadonlyArray<PartRef>): ReadonlyArray<PartRef> =>
  parts.filter((part) => !others.some((other) => other.messageID === part.messageID && samePart(other, part)))

/** The sets for this rejection; if nothing is of the kind that it names, everything is a candidate, but for thinking. */
const freshSets = (input: RepairInput): ReadonlyArray<ReadonlyArray<PartRef>> => {
  const named = candidates(input, input.rejected)
  if (named.length > 0 || input.rejected.kind === "thinking") return setsOf(named, input.rejected)
  const unknown = { kind: "unknown", extent: "some" } as const
  return setsOf(candidates(input, unknown), unknown)
}

/**
 * The next request to try after a rejection. The same kind again: the parts withheld before were not the reason, and are shown
 * again. Another kind: they were, and stay withheld.
 */
export const repair = (input: RepairInput): Change => {
  const { before, rejected } = input
  const count = (before?.count ?? 0) + 1
  const goesOn = before !== undefined && before.kind === rejected.kind
  const [next, ...left] = goesOn ? before.left : freshSets(input)
  const trying = goesOn ? before.trying : []
  if (next === undefined || count > maxTries) {
    return { shown: before?.trying ?? [], withheld: [], trial: undefined }
  }
  return {
    shown: without(trying, next),
    withheld: without(next, trying),
    trial: { kind: rejected.kind, trying: next, left, count }
  }
}
