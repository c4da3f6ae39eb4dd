/**
 * The public API of `@daybook/discord`.
 *
 * @module @daybook/discord
 */
export { check, type Finding } from "./Check.ts"
export { Book, layer as bookLayer } from "./book/Book.ts"
export { layer, type Options, run, serve } from "./Bot.ts"
export { OutboxFailed } from "./outbox/OutboxFile.ts"
export { nonceOf, type PostKey } from "./post/Nonce.ts"
export { read as readSettings, Settings } from "./trust/Settings.ts"
export { Discord, layer as discordLayer } from "./wire/Discord.ts"
export { DiscordError } from "./wire/DiscordError.ts"
