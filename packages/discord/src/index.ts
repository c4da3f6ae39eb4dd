/**
 * The public API of `@daybook/discord`.
 *
 * @module @daybook/discord
 */
export { check, type Finding } from "./Bot.ts"
export { Book, layer as bookLayer } from "./live/Book.ts"
export { layer, type Options, run, serve } from "./Bot.ts"
export { OutboxFailed } from "./outbox/OutboxFile.ts"
export { nonceOf, type PostKey } from "./post/Post.ts"
export { read as readSettings, Settings } from "./domain/Settings.ts"
export { Discord, layer as discordLayer } from "./wire/Discord.ts"
export { DiscordError } from "./wire/Discord.ts"
