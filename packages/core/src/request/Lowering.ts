/**
 * Lowers projected messages to a provider prompt. Pure, except for a cache that lowers an unchanged message once. Calls
 * and results stay paired, provider-native data returns only to its provider and model (MS-1..MS-4), and every log
 * yields a conversation that providers accept.
 * Spec: EX-R4..EX-R8, EX-R10, EX-R12, EX-R13, RQ-20..RQ-24, RQ-640..RQ-643.
 */
import type * as Prompt from "@effect/ai/Prompt"
import { Predicate, Record } from "effect"
import { answersNothing } from "@daybook/log/domain/AnswerProblem"
import { MessageID } from "@daybook/log/domain/Identifiers"
import type { AssistantMessage, Message, ToolPart, UserMessage } from "@daybook/log/domain/Message"
import { type ModelRef, type ProviderMetadata, sameModel } from "@daybook/log/domain/Values"
import { clipped, type Instead, mediaKind, nothingInstead, textPart, type UserPart } from "../prompt/FilePart.ts"
import { expandedParts, givenParts, unprivileged } from "../prompt/PromptParts.ts"
import { isBlank } from "@daybook/log/support/Text"
import { isPruned, nothingPruned, placeholder } from "./Prune.ts"
import { cutOff, goOn, nothingAsked } from "./Reminders.ts"
import { defaultPictures, insteadOf, isThinkingWithheld, type Withholding, withinPictures } from "./Withholding.ts"

export interface LoweringTarget extends Withholding {
  /** Whether the provider accepts system messages between others (RQ-22). */
  readonly systemMessages: "leading" | "anywhere"
  /** Tool results in messages up to this sequence number are shown as placeholders. */
  readonly prunedSeq: number
  /** Maximum media in the request; undefined: the default. */
  readonly pictures?: number | undefined
}

/** Nothing pruned, for a provider that accepts system messages only at the start. */
export const shownTo = (model: ModelRef): LoweringTarget => ({
  model,
  systemMessages: "leading",
  prunedSeq: nothingPruned
})

type AssistantPart = Prompt.AssistantMessagePartEncoded

const userMessage = (content: ReadonlyArray<UserPart>): Prompt.MessageEncoded => ({ role: "user", content })

/** Provider metadata is replayed only to the same provider and model, and never from a failed answer (MS-1). */
export const nativeTo = (message: AssistantMessage, model: ModelRef): boolean =>
  message.error === undefined && sameModel({ ...message.model, variant: "any" }, { ...model, variant: "any" })

/** The library replays records by provider; an imported session may hold other values, which are dropped. */
const options = (metadata: ProviderMetadata | undefined, native: boolean) =>
  native && metadata !== undefined ? { options: Record.filter(metadata, Predicate.isRecord) } : {}

const unless = (text: string, blank: string): string => (isBlank(text) ? blank : text)

type Content = NonNullable<ToolPart["content"]>[number]

/** The sentence in place of a file of a result; undefined: the file is shown. */
const hiddenFile = (content: Content, at: number, instead: Instead): string | undefined => {
  const kind = content.type === "file" ? mediaKind(content.mime) : undefined
  return content.type === "text" || kind === undefined ? undefined : instead.medium(at, kind, content.name)
}

/** Providers reject a failed result without text (EX-R10). */
const plainResult = (part: ToolPart, instead: Instead): string => {
  if (part.state === "error") return unless(part.error?.message ?? "", "the tool failed")
  const content = part.content ?? []
  const texts = content.flatMap((one, at) => (one.type === "text" ? one.text : (hiddenFile(one, at, instead) ?? [])))
  if (content.length > texts.length) return unless(texts.join("\n"), "The content follows.")
  return texts.length > 0 ? unless(texts.join("\n"), "(no output)") : JSON.stringify(part.structured ?? {})
}

/** A result's text with the runtime's tags escaped (LM-30). */
const resultText = (part: ToolPart, instead: Instead) => instead.whole ?? unprivileged(plainResult(part, instead))

/** A provider-executed result as text for another model, truncated. */
const hostedText = (part: ToolPart): string =>
  part.result === undefined
    ? resultText(part, nothingInstead)
    : clipped(unprivileged(JSON.stringify(part.result)), 2_000)

/** Whether the provider ran the tool; then call and result belong to the provider. */
const hosted = (part: ToolPart): boolean => part.provider?.executed === true

const spoken = (text = "", metadata?: ProviderMetadata): ReadonlyArray<AssistantPart> =>
  isBlank(text) ? [] : [{ ...textPart(text), ...options(metadata, true) }]

const allParts = (message: AssistantMessage, native: boolean, shown: LoweringTarget): ReadonlyArray<AssistantPart> => {
  const withheld = isThinkingWithheld(message, shown.model)
  return message.content.flatMap((part): ReadonlyArray<AssistantPart> => {
    if (part.type === "text") return spoken(part.text, native ? part.providerMetadata : undefined)
    if (part.type === "reasoning") {
      // Thinking is thinking to the model that thought it, also where the protocol has no metadata for it.
      if (withheld) return []
      if (native && (part.providerMetadata !== undefined || !isBlank(part.text ?? ""))) {
        return [{ type: "reasoning", text: part.text ?? "", ...options(part.providerMetadata, true) }]
      }
      // After a model switch, visible reasoning stays as plain text (MS-2).
      return spoken(part.text)
    }
    // A call that was never made has no result to pair with.
    if (part.state === "pending" || part.state === "running" || part.input === undefined) return []
    if (hosted(part) && !native) return [textPart(`[${part.name}: ${hostedText(part)}]`)]
    const call: AssistantPart = {
      type: "tool-call",
      id: part.id,
      name: part.name,
      params: insteadOf(message, shown, part.id).input ? {} : part.input,
      providerExecuted: hosted(part),
      ...options(part.provider?.metadata, native)
    }
    if (!hosted(part)) return [call]
    const result: AssistantPart = {
      type: "tool-result",
      id: part.id,
      name: part.name,
      isFailure: part.state === "error",
      providerExecuted: true,
      result: part.result ?? null,
      ...options(part.provider?.resultMetadata ?? part.provider?.metadata, native)
    }
    return [call, result]
  })
}

/** Drops trailing reasoning: providers reject an answer that ends with it. */
const assistantParts = (message: AssistantMessage, native: boolean, shown: LoweringTarget) => {
  const parts = allParts(message, native, shown)
  return parts.slice(0, parts.findLastIndex(({ type }) => type !== "reasoning") + 1)
}

const assistantMessages = (message: AssistantMessage, shown: LoweringTarget): ReadonlyArray<Prompt.MessageEncoded> => {
  const { model, prunedSeq } = shown
  const native = nativeTo(message, model) && !isThinkingWithheld(message, model)
  const content = assistantParts(message, native, shown)
  // An empty answer is omitted (MS-3), even if another model would read its thoughts as text (EX-T44).
  if (content.length === 0 || answersNothing(message)) return []
  const local = message.content.filter(
    (part): part is ToolPart =>
      part.type === "tool" &&
      !hosted(part) &&
      part.input !== undefined &&
      (part.state === "completed" || part.state === "error")
  )
  const messages: Array<Prompt.MessageEncoded> = [{ role: "assistant", content }]
  if (local.length === 0) return messages
  messages.push({
    role: "tool",
    content: local.map((part) => ({
      type: "tool-result" as const,
      id: part.id,
      name: part.name,
      isFailure: part.state === "error",
      result: isPruned(message, part, prunedSeq)
        ? placeholder(part)
        : resultText(part, insteadOf(message, shown, part.id)),
      providerExecuted: false
    }))
  })
  const media = local.flatMap((part) => {
    const instead = insteadOf(message, shown, part.id)
    return (isPruned(message, part, prunedSeq) ? [] : (part.content ?? [])).flatMap((content, at) =>
      content.type === "file" && hiddenFile(content, at, instead) === undefined
        ? [textPart(`Returned by ${part.name}:`), ...givenParts(content)]
        : []
    )
  })
  if (media.length > 0) messages.push(userMessage(media))
  return messages
}

/** Privileged text in its place: a system message where the provider accepts it, else marked user text. */
const systemMessage = (text: string, { systemMessages }: LoweringTarget): Prompt.MessageEncoded =>
  systemMessages === "anywhere"
    ? { role: "system", content: text }
    : userMessage([textPart(`<system-update>\n${unprivileged(text)}\n</system-update>`)])

const systemMessages = (text: string, shown: LoweringTarget) => (isBlank(text) ? [] : [systemMessage(text, shown)])

const userMessages = (message: UserMessage, shown: LoweringTarget): ReadonlyArray<Prompt.MessageEncoded> => [
  ...systemMessages(message.system ?? "", shown),
  userMessage(expandedParts(message, insteadOf(message, shown)))
]

const runningTask = (task: string): string =>
  "<running-task>\nThis prompt opened the work that is under way. Go on with it where the record ends; do not begin anew.\n" +
  `${task}\n</running-task>\n`

const recentContext = (recent: string): string => `<recent-context>\n${unprivileged(recent)}\n</recent-context>\n`

const lowerMessage = (message: Message, shown: LoweringTarget): ReadonlyArray<Prompt.MessageEncoded> => {
  switch (message.type) {
    case "user":
      return userMessages(message, shown)
    case "assistant":
      return assistantMessages(message, shown)
    case "system":
      return systemMessages(message.text, shown)
    case "synthetic":
      return isBlank(message.text) ? [] : [userMessage([textPart(message.text)])]
    case "shell":
      return [
        userMessage([
          textPart(insteadOf(message, shown).whole ?? unprivileged(`$ ${message.command}\n${message.output ?? ""}`))
        ])
      ]
    case "compaction":
      return [
        userMessage([
          textPart(
            "<conversation-checkpoint>\nThis is a record of the conversation so far. What it holds has happened; go on where it " +
              "ends. What was asked last in it and has no answer yet is still to be done.\n" +
              (message.task === undefined ? "" : runningTask(message.task)) +
              `<summary>\n${unprivileged(message.summary)}\n</summary>\n` +
              // A checkpoint that keeps whole messages has no record of them.
              (message.keptSeq !== undefined && message.recent === "" ? "" : recentContext(message.recent)) +
              "</conversation-checkpoint>"
          )
        ])
      ]
    case "branch-summary":
      return isBlank(message.summary)
        ? []
        : [
            userMessage([
              textPart(
                "<branch-summary>\nThe conversation was taken up again from an earlier point. What was tried after that point, in a " +
                  `branch that was left, is summed up here.\n<summary>\n${unprivileged(message.summary)}\n</summary>\n</branch-summary>`
              )
            ])
          ]
    case "agent-switched":
    case "model-switched":
      return []
  }
}

const remembered = new WeakMap<
  Message,
  { readonly key: string; readonly lowered: ReadonlyArray<Prompt.MessageEncoded> }
>()

/** Returns a function that lowers one message. It returns the same objects as long as nothing about the message changed. */
const lowering = (shown: LoweringTarget) => {
  const { media, model, prunedSeq, systemMessages } = shown
  const target = `${model.providerID}/${model.id} ${systemMessages} ${media?.join() ?? "any"}`
  const pruned = `${target} pruned`
  return (message: Message): ReadonlyArray<Prompt.MessageEncoded> => {
    const key = message.seq <= prunedSeq ? pruned : target
    const before = remembered.get(message)
    if (before?.key === key) return before.lowered
    const lowered = lowerMessage(message, shown)
    remembered.set(message, { key, lowered })
    return lowered
  }
}

/** Lowers messages in order, without the additions at the start and end of a request. */
export const lower = (messages: ReadonlyArray<Message>, shown: LoweringTarget) => messages.flatMap(lowering(shown))

/** A message in the provider's form: from the session, or added by lowering (then it is in no log). */
export interface Lowered {
  readonly message: Message
  readonly shown: ReadonlyArray<Prompt.MessageEncoded>
}

const added = (name: string, text: string): Lowered => ({
  message: { type: "synthetic", id: MessageID.make(`msg_added.${name}`), seq: -1, createdAt: 0, text },
  shown: [userMessage([textPart(text)])]
})
/** The reasons with which an answer ends before it is done. */
const unfinished: ReadonlySet<string | undefined> = new Set(["length", "pause"])
const [unasked, cut, on] = [added("start", nothingAsked), added("cut", cutOff), added("on", goOn)]

/**
 * Builds the conversation of a request. Each answer in the history was once requested, so at each answer, and at the
 * end, the conversation must begin with the user role and must not end with an answer. Hence the next request begins
 * with the bytes of this one, whatever its outcome (EX-R13, EX-R12).
 */
export const conversation = (messages: ReadonlyArray<Message>, shown: LoweringTarget): ReadonlyArray<Lowered> => {
  const lowerOne = lowering(shown)
  const all: Array<Lowered> = []
  // The last answer without a user message after it; system messages belong to neither side.
  let last: AssistantMessage | "user" | undefined
  const bridge = () => {
    if (last === "user") return
    all.push(last === undefined ? unasked : last.error !== undefined || unfinished.has(last.finish) ? cut : on)
    last = "user"
  }
  for (const message of messages) {
    if (message.type === "assistant") bridge()
    const lowered = lowerOne(message)
    all.push({ message, shown: lowered })
    if (lowered.length === 0) continue
    if (message.type === "assistant") last = lowered.length === 1 ? message : "user"
    else if (message.type !== "system") last = "user"
  }
  bridge()
  const groups = all.map((one) => one.shown)
  const within = withinPictures(groups, shown.pictures ?? defaultPictures)
  return within === groups ? all : all.map((one, at) => ({ ...one, shown: within[at] ?? one.shown }))
}
