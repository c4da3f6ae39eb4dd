/**
 * The public API of `@daybook/formats`, one namespace per module. A module that is not listed is internal.
 *
 * @module @daybook/formats
 */
export * as ClaudeReader from "./claude/ClaudeReader.ts"
export * as CodexReader from "./codex/CodexReader.ts"
export * as Conversation from "./conversation/Conversation.ts"
export * as Dialect from "./conversation/Dialect.ts"
export * as EntryErrors from "./entry/EntryErrors.ts"
export * as EntryReader from "./entry/EntryReader.ts"
export * as EntryTree from "./entry/EntryTree.ts"
export * as SessionContext from "./entry/SessionContext.ts"
export * as DialectReader from "./reading/DialectReader.ts"
export * as JsonLines from "./lines/JsonLines.ts"
export * as LogFile from "./lines/LogFile.ts"
export * as BlobRef from "./blob/BlobRef.ts"
export * as BlobStore from "./blob/BlobStore.ts"
export * as BlobUse from "./blob/BlobUse.ts"
export * as FileBlobStore from "./blob/FileBlobStore.ts"
export * as FileSessionStorage from "./storage/FileSessionStorage.ts"
export * as MemoryBlobStore from "./blob/MemoryBlobStore.ts"
export * as MemorySessionStorage from "./storage/MemorySessionStorage.ts"
export * as SessionStorage from "./storage/SessionStorage.ts"
export * as StorageError from "./storage/StorageError.ts"
export * as Truncation from "./blob/Truncation.ts"
export * as ThreadID from "./thread/ThreadID.ts"
export * as ThreadReader from "./thread/ThreadReader.ts"
export * as ThreadRecord from "./thread/ThreadRecord.ts"
