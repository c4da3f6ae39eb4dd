/** Gives events to the gateway's sessions: each gets those that its intents allow, numbered in its own sequence. */
import { GatewayIntentBits, PermissionFlagsBits } from "discord.js"
import { permissionsIn } from "./Permissions.ts"
import { changed, type Channel, type GatewaySession, type Json, type Message, type World } from "./World.ts"
import { messageEvent } from "./Wire.ts"

/** Appends to the session's sequence and sends to its connection, if it has one. */
export const dispatchTo = (world: World, session: GatewaySession, t: string, d: Json): void => {
  session.seq += 1
  const event = { s: session.seq, t, d }
  session.events.push(event)
  if (session.events.length > world.settings.kept) session.events.shift()
  session.send?.(event)
}

/** Events with an intent; 0 for those that no intent withholds. The plan of faults may send an event twice. */
export const dispatch = (
  world: World,
  t: string,
  intent: number,
  toData: Json | ((session: GatewaySession) => Json)
): void => {
  for (const session of world.sessions.values()) {
    if (intent !== 0 && (session.intents & intent) === 0) continue
    const data = typeof toData === "function" ? toData(session) : toData
    const times = world.faults.deliveries(t)
    for (let count = 0; count < times; count += 1) dispatchTo(world, session, t, data)
  }
  changed(world)
}

const hidden = { content: "", embeds: [], attachments: [], components: [] }

/** A message that was created or edited, in a channel that the bot sees. Without the intent its content is withheld. */
export const dispatchMessage = (
  world: World,
  t: "MESSAGE_CREATE" | "MESSAGE_UPDATE",
  channel: Channel,
  message: Message
): void => {
  if ((permissionsIn(world, channel, world.bot.id) & PermissionFlagsBits.ViewChannel) === 0n) return
  const data = messageEvent(world, message)
  const open = message.author.id === world.bot.id || message.pings.users.includes(world.bot.id)
  dispatch(world, t, GatewayIntentBits.GuildMessages, ({ intents }) =>
    open || (intents & GatewayIntentBits.MessageContent) !== 0 ? data : { ...data, ...hidden }
  )
}
