/** Does what buttons, menus and forms of posts say. Spec: DI-43..DI-45 in specs/discord.md. */
import { Context, Effect, Either, Schema } from "effect"
import { Book } from "../book/Book.ts"
import { Outbox } from "../outbox/Outbox.ts"
import type { Target } from "../post/Post.ts"
import { publishable } from "../text/Publishable.ts"
import type { Right } from "../trust/Rights.ts"
import { Discord } from "../wire/Discord.ts"
import { controlOf, readControl } from "../wire/Messages.ts"
import type { Interaction } from "../wire/Packets.ts"
import * as Answering from "./Answering.ts"
import { decidedBody } from "./PermissionPost.ts"
import * as Permissions from "./Permissions.ts"

type Question = Extract<Target, { readonly type: "question" }>

/** What an interaction does, and to what; undefined if its post is not known. */
export const source = ({ data }: Interaction) =>
  Effect.gen(function* () {
    const control = readControl(data?.custom_id ?? "")
    const target = control && (yield* (yield* Outbox).targetOf(control.nonce))
    return control === undefined || target === undefined ? undefined : { ...control, target }
  })

/** A press of a button, a choice of a menu, or a form that was sent. */
export type Press = NonNullable<Effect.Effect.Success<ReturnType<typeof source>>>

/** What a person must be allowed to do to press it. */
export const rightOf = (target: Target): Right => (target.type === "permission" ? "approve" : "ask")

const decisions: Readonly<Record<string, "once" | "session" | "always" | "decline">> = {
  "allow:once": "once",
  "allow:session": "session",
  "allow:always": "always",
  decline: "decline"
}

const decide = (thread: string, target: Extract<Target, { readonly type: "permission" }>, action: string, by: string) =>
  Effect.gen(function* () {
    const decision = decisions[action]
    if (decision === undefined) return "There is no such button."
    const book = yield* Book
    yield* book.decide(target.sessionID, target.ask, { decision })
    yield* Permissions.show(thread, target, decidedBody(decision, by))
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

/** Does it and answers the person. */
export const press = (
  interaction: Interaction,
  { action, nonce, target }: Press,
  by: string,
  { decisions, secrets }: { readonly secrets: ReadonlyArray<string>; readonly decisions: Effect.Semaphore }
) =>
  Effect.gen(function* () {
    const discord: Context.Tag.Service<Discord> = yield* Discord
    if (target.type === "question" && action === "answer") {
      return yield* Answering.form(discord, interaction, controlOf("answers", nonce), target.questions)
    }
    yield* Answering.begin(discord, interaction)
    const said = (content: string): Answering.Answer => ({ content })
    const work = () => {
      switch (target.type) {
        case "permission":
          return Effect.map(decisions.withPermits(1)(decide(interaction.channel_id ?? "", target, action, by)), said)
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
      Answering.Answer,
      unknown,
      Book | Outbox | Effect.Effect.Context<ReturnType<typeof Permissions.show>>
    > = work()
    const answered = yield* Effect.catchAll(done, (error) =>
      Effect.as(Effect.logWarning(String(error)), said(`⚠️ ${error instanceof Error ? error.message : "It failed."}`))
    )
    yield* Answering.complete(discord, interaction, answered)
  })
