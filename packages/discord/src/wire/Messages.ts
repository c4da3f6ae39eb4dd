/** The requests that create, change, find and read messages. Spec: DI-10..DI-13, DI-25 in specs/discord.md. */
import { ButtonStyle, ComponentType } from "discord.js"
import { Context, Effect, Schema } from "effect"
import type { Body, Button, Menu } from "../post/Post.ts"
import { Discord, type DiscordError } from "./Discord.ts"
import { Channel, Message } from "./Packets.ts"

type Wire = Context.Tag.Service<Discord>

const styles: Readonly<Record<Button["style"], number>> = {
  primary: ButtonStyle.Primary,
  secondary: ButtonStyle.Secondary,
  success: ButtonStyle.Success,
  danger: ButtonStyle.Danger
}

/** The name of a button or menu: its action, and the post that it belongs to. */
export const controlOf = (action: string, nonce: string): string => `${action}|${nonce}`

export const readControl = (name: string): { readonly action: string; readonly nonce: string } | undefined => {
  const bar = name.lastIndexOf("|")
  return bar < 0 ? undefined : { action: name.slice(0, bar), nonce: name.slice(bar + 1) }
}

const menuRow = (nonce: string, { action, most, options, placeholder }: Menu) => ({
  type: ComponentType.ActionRow,
  components: [
    {
      type: ComponentType.StringSelect,
      custom_id: controlOf(action, nonce),
      options,
      min_values: 1,
      max_values: most,
      ...(placeholder === undefined ? {} : { placeholder })
    }
  ]
})

const componentsOf = (nonce: string, { buttons = [], menus = [] }: Body) => [
  ...menus.map((menu) => menuRow(nonce, menu)),
  ...(buttons.length === 0
    ? []
    : [
        {
          type: ComponentType.ActionRow,
          components: buttons.map(({ action, label, style }) => ({
            type: ComponentType.Button,
            custom_id: controlOf(action, nonce),
            label,
            style: styles[style]
          }))
        }
      ])
]

const suppressEmbeds = 4

export const messageOf = (nonce: string, body: Body) => ({
  content: body.content,
  components: componentsOf(nonce, body),
  allowed_mentions: { parse: [] },
  flags: suppressEmbeds
})

const filesOf = ({ file }: Body) =>
  file === undefined ? undefined : [{ name: file.name, data: Buffer.from(file.text), contentType: "text/markdown" }]

/** Creates a message. A repetition with the same nonce within a few minutes returns the existing message. */
export const create = (discord: Wire, channel: string, nonce: string, body: Body) =>
  discord.request(
    {
      method: "POST",
      route: `/channels/${channel}/messages`,
      body: { ...messageOf(nonce, body), nonce, enforce_nonce: true },
      files: filesOf(body)
    },
    Message
  )

/** Shows another body in a message; its file stays. */
export const edit = (discord: Wire, channel: string, message: string, nonce: string, body: Body) =>
  discord.send({ method: "PATCH", route: `/channels/${channel}/messages/${message}`, body: messageOf(nonce, body) })

/** Messages behind one, oldest first: at most a hundred. */
export const after = (discord: Wire, channel: string, message: string) =>
  Effect.map(
    discord.request(
      { method: "GET", route: `/channels/${channel}/messages`, query: { after: message, limit: "100" } },
      Schema.Array(Message)
    ),
    (messages) => messages.toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1))
  )

export const one = (discord: Wire, channel: string, message: string): Effect.Effect<Message, DiscordError> =>
  discord.request({ method: "GET", route: `/channels/${channel}/messages/${message}` }, Message)

export const channel = (discord: Wire, id: string): Effect.Effect<Channel, DiscordError> =>
  discord.request({ method: "GET", route: `/channels/${id}` }, Channel)

export const unarchive = (discord: Wire, thread: string) =>
  discord.send({ method: "PATCH", route: `/channels/${thread}`, body: { archived: false } })

/** Begins the thread of a message; the thread has the id of the message. */
export const openThread = (discord: Wire, channel: string, message: string, name: string) =>
  discord.send({
    method: "POST",
    route: `/channels/${channel}/messages/${message}/threads`,
    body: { name, auto_archive_duration: 10_080 }
  })

const reactionRoute = (channel: string, message: string, emoji: string) =>
  `/channels/${channel}/messages/${message}/reactions/${encodeURIComponent(emoji)}/@me` as const

export const react = (discord: Wire, channel: string, message: string, emoji: string) =>
  discord.send({ method: "PUT", route: reactionRoute(channel, message, emoji) })

export const unreact = (discord: Wire, channel: string, message: string, emoji: string) =>
  discord.send({ method: "DELETE", route: reactionRoute(channel, message, emoji) })
