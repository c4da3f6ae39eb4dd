/** Answers interactions: a first answer within three seconds, and its change later. Spec: DI-42 in specs/discord.md. */
import { ComponentType, MessageFlags, TextInputStyle } from "discord.js"
import { Context, Effect } from "effect"
import type { QuestionItem } from "@daybook/core/domain/Question"
import { clip, line } from "../text/Publishable.ts"
import type { Discord } from "../wire/Discord.ts"
import type { Interaction } from "../wire/Packets.ts"

type Wire = Context.Tag.Service<Discord>

const callback = (discord: Wire, { id, token }: Interaction, type: number, data: object) =>
  discord.send({ method: "POST", route: `/interactions/${id}/${token}/callback`, body: { type, data }, auth: false })

/** Who sees the answer. */
export type Audience = "person" | "everyone"

/** Says that an answer follows. */
export const begin = (discord: Wire, interaction: Interaction, audience: Audience = "person") =>
  callback(discord, interaction, 5, audience === "person" ? { flags: MessageFlags.Ephemeral } : {})

export interface Answer {
  readonly content: string
  readonly file?: { readonly name: string; readonly text: string } | undefined
}

/** Answers an interaction that was acknowledged before. The answer pings nobody. */
export const complete = (discord: Wire, { application_id, token }: Interaction, { content, file }: Answer) =>
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
export const refuse = (discord: Wire, interaction: Interaction, content: string) =>
  Effect.ignoreLogged(callback(discord, interaction, 4, { content, flags: MessageFlags.Ephemeral }))

/** Shows a form with a field for each question. */
export const form = (discord: Wire, interaction: Interaction, id: string, questions: ReadonlyArray<QuestionItem>) =>
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
