/**
 * The public API of `@daybook/formats`, one namespace per module. A module that is not listed is internal.
 *
 * @module @daybook/formats
 */
export * as Conversation from "./conversation/Conversation.ts"
export * as Dialect from "./conversation/Dialect.ts"
export * as JsonLines from "./lines/JsonLines.ts"
export * as LogFile from "./lines/LogFile.ts"
