/**
 * Shows the permissions that calls wait for, and does what buttons, menus and forms of posts say. Permissions are not
 * events: while a call is open, the bot asks the server for the open permissions. Spec: DI-42..DI-45 in
 * specs/discord.md.
 */
import { ComponentType, MessageFlags, TextInputStyle } from "discord.js"
import { Clock, Context, Effect, Either, Schedule, Schema } from "effect"
import type { OpenPermission } from "@daybook/api/group/WorkApi"
import type { QuestionItem } from "@daybook/core/domain/Question"
import type { PermissionSubject } from "@daybook/core/permission/PermissionSubject"
import type { Right } from "../domain/Settings.ts"
import { Book, isAway, patiently } from "../live/Book.ts"
import { Sender } from "../live/Sender.ts"
import { Outbox } from "../outbox/Outbox.ts"
import type { Body, Button, Target } from "../post/Post.ts"
import { clip, line, publishable } from "../post/Text.ts"
import { Discord } from "../wire/Discord.ts"
import { controlOf, readControl } from "../wire/Messages.ts"
import type { Interaction } from "../wire/Packets.ts"

// Answers interactions: a first answer within three seconds, and its change later.

type Wire = Context.Tag.Service<Discord>

const callback = (discord: Wire, { id, token }: Interaction, type: number, data: object) =>
  discord.send({ method: "POST", route: `/interactions/${id}/${token}/callback`, body: { type, data }, auth: false })

/** Who sees the answer. */
export type Audience = "person" | "everyone"

export const beginAnswer = (discord: Wire, interaction: Interaction, audience: Audience = "person") =>
  callback(discord, interaction, 5, audience === "person" ? { flags: MessageFlags.Ephemeral } : {})

interface InteractionAnswer {
  readonly content: string
  readonly file?: { readonly name: string; readonly text: string } | undefined
}

/** Answers an interaction that was acknowledged before. The answer pings nobody. */
export const completeAnswer = (
  discord: Wire,
  { application_id, token }: Interaction,
  { content, file }: InteractionAnswer
) =>
  discord.send({
    method: "PATCH",
    route: `/webhooks/${application_id}/${token}/messages/@original`,
    body: { content: clip(content, 2_000), allowed_mentions: { parse: [] } },
    auth: false,
    ...(file === undefined
      ? {}
      : { files: [{ name: file.name, data: Buffer.from(file.text), contentType: "text/plain" }] })
  })

/** Answers at once. */
export const refuseAnswer = (discord: Wire, interaction: Interaction, content: string) =>
  Effect.ignoreLogged(callback(discord, interaction, 4, { content, flags: MessageFlags.Ephemeral }))

const showForm = (discord: Wire, interaction: Interaction, id: string, questions: ReadonlyArray<QuestionItem>) =>
  callback(discord, interaction, 9, {
    custom_id: id,
    title: "Answer",
    components: questions.map(({ header, options = [], question }, at) => ({
      type: ComponentType.ActionRow,
      components: [
        {
          type: ComponentType.TextInput,
          custom_id: String(at),
          label: line(header ?? question, 45) || "Answer",
          style: TextInputStyle.Paragraph,
          placeholder: line(options.map(({ label }) => label).join(" | "), 100),
          max_length: 4_000
        }
      ]
    }))
  })

// Shows a permission that a call waits for, and its end.

const details = (subject: PermissionSubject): string => {
  switch (subject.type) {
    case "command":
      return [`in ${subject.folder}`, subject.command, ...subject.warnings.map((warning) => `⚠ ${warning}`)].join("\n")
    case "change":
      return subject.files
        .map(({ change, diff, movedTo, path }) =>
          [`${change} ${path}${movedTo === undefined ? "" : ` to ${movedTo}`}`, diff].join("\n")
        )
        .join("\n\n")
    case "read":
      return subject.pattern === undefined ? subject.path : `${subject.pattern} in ${subject.path}`
    case "external_directory":
      return [subject.folder, ...(subject.command === undefined ? [] : [subject.command])].join("\n")
    case "mcp":
      return `${subject.server}: ${subject.tool}\n${JSON.stringify(subject.input, null, 2)}`
    case "task":
      return [`${subject.agent}: ${subject.description}`, subject.prompt].join("\n")
    case "skill":
      return subject.name
    case "call":
      return JSON.stringify(subject.input ?? {}, null, 2)
  }
}

const mostInPost = 1_400

/** The time that is left, which Discord counts down. */
const limit = (expiresAt: number | undefined): string =>
  expiresAt === undefined ? "" : `\nRefused <t:${Math.floor(expiresAt / 1_000)}:R> without a decision.`

const permissionBody = (
  { always, notes, permission, resources, subject, title, tool }: OpenPermission,
  secrets: ReadonlyArray<string>,
  expiresAt?: number
): Body => {
  const all = publishable([details(subject), ...resources, ...notes].join("\n"), secrets)
  const asks = `🔐 \`${line(tool, 40)}\` asks for **${line(permission, 60)}**: ${line(publishable(title, secrets), 300)}`
  const head = `${asks}${limit(expiresAt)}`
  const isLong = all.length > mostInPost
  const once: Button = { action: "allow:once", label: "Allow once", style: "success" }
  const more: ReadonlyArray<Button> =
    always.length === 0
      ? []
      : [
          { action: "allow:session", label: "Allow in this session", style: "secondary" },
          { action: "allow:always", label: "Allow always", style: "secondary" }
        ]
  return {
    content: isLong ? `${head}\nAll of it is in the file.` : `${head}\n\`\`\`\n${all.replaceAll("```", "'''")}\n\`\`\``,
    ...(isLong ? { file: { name: "permission.txt", text: all } } : {}),
    buttons: [once, ...more, { action: "decline", label: "Decline", style: "danger" }]
  }
}

const words: Readonly<Record<string, string>> = {
  once: "✅ Allowed once",
  session: "✅ Allowed in this session",
  always: "✅ Allowed always",
  decline: "🛑 Declined"
}

const decidedBody = (decision: string, by: string): Body => ({
  content: `🔐 ${words[decision] ?? decision} by <@${by}>`
})

/** A permission that closed elsewhere. */
const closedBody: Body = { content: "🔐 Decided elsewhere, or the call has ended" }

/** A permission whose time has passed. */
const expiredBody: Body = { content: "🔐 Not decided here in time" }

type PermissionTarget = Extract<Target, { readonly type: "permission" }>

/** Puts the post of a permission. */
const show = Effect.fnUntraced(function* (thread: string, target: PermissionTarget, body: Body) {
  const [outbox, sender] = [yield* Outbox, yield* Sender]
  const key = { sessionID: target.sessionID, event: `ask:${target.ask}`, chunk: 0 }
  yield* outbox.put(thread, { type: "post", key, body, target })
  yield* sender.wake(thread)
})

/** Compares what is asked with what is shown. */
const look = Effect.fnUntraced(function* (secrets: ReadonlyArray<string>) {
  const [book, outbox] = [yield* Book, yield* Outbox]
  const shown = yield* outbox.askings
  if (shown.length === 0 && !(yield* outbox.isCalling)) return
  // Read before the request, so that an expired permission never counts as decided.
  const now = yield* Clock.currentTimeMillis
  const open = yield* book.permissions
  for (const permission of open) {
    const { ask, sessionID, timeLeftMs } = permission
    const thread = yield* outbox.threadOf(sessionID)
    if (
      thread === undefined ||
      shown.some(({ target }) => target.ask === ask) ||
      (yield* outbox.isPut({ sessionID, event: `ask:${ask}`, chunk: 0 }))
    )
      continue
    const expiry = timeLeftMs === undefined ? {} : { expiresAt: now + timeLeftMs }
    const body = permissionBody(permission, secrets, expiry.expiresAt)
    yield* show(thread, { type: "permission", sessionID, ask, ...expiry }, body)
  }
  for (const { channel, target } of shown) {
    if (open.some(({ ask }) => ask === target.ask)) continue
    yield* show(channel, target, now >= (target.expiresAt ?? Infinity) ? expiredBody : closedBody)
  }
})

/** Looks every second, while no person decides: a press is not taken for a decision elsewhere. */
export const follow = (secrets: ReadonlyArray<string>, decisions: Effect.Semaphore) =>
  decisions
    .withPermits(1)(look(secrets))
    .pipe(
      Effect.repeat(Schedule.spaced("1 second")),
      Effect.retry({ schedule: patiently, while: isAway }),
      Effect.zipRight(Effect.never)
    )

// Does what buttons, menus and forms of posts say.

type Question = Extract<Target, { readonly type: "question" }>

/** What an interaction does, and to what; undefined if its post is not known. */
export const source = Effect.fnUntraced(function* ({ data }: Interaction) {
  const control = readControl(data?.custom_id ?? "")
  const target = control && (yield* (yield* Outbox).targetOf(control.nonce))
  return control === undefined || target === undefined ? undefined : { ...control, target }
})

/** A press of a button, a choice of a menu, or a form that was sent. */
type Press = NonNullable<Effect.Effect.Success<ReturnType<typeof source>>>

/** What a person must be allowed to do to press it. */
export const rightOf = (target: Target): Right => (target.type === "permission" ? "approve" : "ask")

const decisions: Readonly<Record<string, "once" | "session" | "always" | "decline">> = {
  "allow:once": "once",
  "allow:session": "session",
  "allow:always": "always",
  decline: "decline"
}

const decide = (thread: string, target: PermissionTarget, action: string, by: string) =>
  Effect.gen(function* () {
    const decision = decisions[action]
    if (decision === undefined) return "There is no such button."
    const book = yield* Book
    yield* book.decide(target.sessionID, target.ask, { decision })
    yield* show(thread, target, decidedBody(decision, by))
    return "Done."
  }).pipe(Effect.catchTag("PermissionClosed", ({ message }) => Effect.succeed(message)))

const answer = ({ callID, messageID, sessionID }: Question, answers: ReadonlyArray<string>) =>
  Effect.flatMap(Book, (book) => book.answer({ sessionID, messageID, callID, answers })).pipe(
    Effect.as("Answered."),
    Effect.catchTag("QuestionClosed", ({ message }) => Effect.succeed(message))
  )

const dismiss = ({ callID, messageID, sessionID }: Question) =>
  Effect.flatMap(Book, (book) => book.dismissQuestion({ sessionID, messageID, callID })).pipe(
    Effect.as("Declined."),
    Effect.catchTag("QuestionClosed", ({ message }) => Effect.succeed(message))
  )

const chosen = ({ questions }: Question, { data }: Interaction): ReadonlyArray<string> => {
  const options = questions[0]?.options ?? []
  return [(data?.values ?? []).flatMap((value) => options[Number(value)]?.label ?? []).join("\n")]
}

const Rows = Schema.Array(
  Schema.Struct({ components: Schema.Array(Schema.Struct({ custom_id: Schema.String, value: Schema.String })) })
)

const fields = ({ questions }: Question, { data }: Interaction): ReadonlyArray<string> => {
  const rows = Either.getOrElse(Schema.decodeUnknownEither(Rows)(data?.components ?? []), () => [])
  const inputs = new Map(rows.flatMap(({ components }) => components).map(({ custom_id, value }) => [custom_id, value]))
  return questions.map((_, at) => inputs.get(String(at)) ?? "")
}

const mostShown = 1_800

/** The output of a call, only for the person who asks. */
const output = (target: Extract<Target, { readonly type: "call" }>, secrets: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const book = yield* Book
    const message = yield* book.message(target.sessionID, target.messageID)
    const parts = message?.type === "assistant" ? message.content : []
    const call = parts.find((part) => part.type === "tool" && part.id === target.callID)
    if (call?.type !== "tool") return { content: "The call is no longer kept." }
    const texts = (call.content ?? []).map((part) => (part.type === "text" ? part.text : `[${part.name ?? part.mime}]`))
    const text = publishable([...texts, ...(call.error === undefined ? [] : [call.error.message])].join("\n"), secrets)
    if (text.trim() === "") return { content: "There is no output." }
    return text.length <= mostShown
      ? { content: `\`\`\`\n${text.replaceAll("```", "'''")}\n\`\`\`` }
      : { content: "The output is in the file.", file: { name: "output.txt", text } }
  })

export const press = (
  interaction: Interaction,
  { action, nonce, target }: Press,
  by: string,
  { decisions: deciding, secrets }: { readonly secrets: ReadonlyArray<string>; readonly decisions: Effect.Semaphore }
) =>
  Effect.gen(function* () {
    const discord: Context.Tag.Service<Discord> = yield* Discord
    if (target.type === "question" && action === "answer") {
      return yield* showForm(discord, interaction, controlOf("answers", nonce), target.questions)
    }
    yield* beginAnswer(discord, interaction)
    const said = (content: string): InteractionAnswer => ({ content })
    const work = () => {
      switch (target.type) {
        case "permission":
          return Effect.map(deciding.withPermits(1)(decide(interaction.channel_id ?? "", target, action, by)), said)
        case "call":
          return output(target, secrets)
        case "question":
          if (action === "dismiss") return Effect.map(dismiss(target), said)
          return Effect.map(
            answer(target, action.startsWith("choose:") ? chosen(target, interaction) : fields(target, interaction)),
            said
          )
        case "begin":
          return Effect.succeed(said("There is nothing to press."))
      }
    }
    const done: Effect.Effect<
      InteractionAnswer,
      unknown,
      Book | Outbox | Effect.Effect.Context<ReturnType<typeof show>>
    > = work()
    const answered = yield* Effect.catchAll(done, (error) =>
      Effect.as(Effect.logWarning(String(error)), said(`⚠️ ${error instanceof Error ? error.message : "It failed."}`))
    )
    yield* completeAnswer(discord, interaction, answered)
  })
