/** The public API of `@daybook/core`. Everything else is internal. */
export * as Daybook from "./Daybook.ts"
export * as Store from "./Store.ts"
export {
  AgentMode,
  AgentNotFound,
  AgentProblem,
  Agents,
  build,
  canAssist,
  canLead,
  defaultAgent,
  plan,
  type Agent,
  type AgentFilesOptions
} from "./agent/Agents.ts"
export { baseInstructions, modelFamily } from "./agent/BaseInstructions.ts"
export type { EnvironmentGrants } from "./child/ChildEnvironment.ts"
export { findProgram as findSandbox, SandboxUnavailable, type SandboxSettings } from "./child/Sandbox.ts"
export { defaultSettings as defaultCompaction, type CompactionSettings } from "./compaction/Limits.ts"
export { isPruned, nothingPruned } from "./compaction/Prune.ts"
export { estimate, messageTokens, type Estimate } from "./compaction/TokenEstimate.ts"
export * as Config from "./config/Config.ts"
export { Templates, TemplateNotFound, type Template, type TemplateProblem } from "./config/Templates.ts"
export { ContextRegistry, HostContext } from "./context/ContextRegistry.ts"
export { ContextSettings, type Settings as ContextSettingsValue } from "./context/ContextSettings.ts"
export * as SystemContext from "./context/SystemContext.ts"
export * from "./events/SessionEvents.ts"
export * as EventRegistry from "./events/Registry.ts"
export { fairly } from "./FairScheduler.ts"
export { boundedBody, isEventStream, withBody } from "./http/BoundedBody.ts"
export { HttpRefused, refusalIn } from "./http/HttpRefused.ts"
export { safeFetch, sameOrigin } from "./http/SameOrigin.ts"
export * from "./Identifiers.ts"
export type { Projector } from "./log/Appends.ts"
export * as Limits from "./Limits.ts"
export * from "./log/EventLog.ts"
export { Mcp, McpError, McpServers, type McpResource, type McpServer, type McpStatus } from "./mcp/Mcp.ts"
export * from "./model/ModelResolver.ts"
export * from "./model/ProviderError.ts"
export * from "./permission/PermissionAsker.ts"
export { FileChange as PermissionFileChange, PermissionSubject } from "./permission/PermissionSubject.ts"
export {
  PermissionStore,
  PermissionStoreError,
  SavedApproval,
  type ApprovalSource,
  type PermissionEvent
} from "./permission/PermissionStore.ts"
export { Rule, Verdict, type Approval } from "./permission/Rule.ts"
export * as Rebuild from "./projection/Rebuild.ts"
export { attachmentIndex } from "./prompt/AttachmentUri.ts"
export { dataBytes } from "./prompt/DataUri.ts"
export { mediaMime } from "./prompt/MediaKind.ts"
export { fold as foldFrame, nothingFolded, type Folded, type Frame, type FramedTool } from "./request/Frame.ts"
export { HostRequests, type HostRequest, type RequestHook } from "./request/HostRequests.ts"
export { historyAt, NothingShown, shownAt, shownBy, type Sent, type ShownRequest } from "./request/Recorded.ts"
export { structuredOutput, StructuredOutputFailed } from "./request/StructuredOutput.ts"
export * from "./session/Address.ts"
export { conversation, type Lowered, type Shown } from "./runner/Lowering.ts"
export { CurrentLocation } from "./session/CurrentLocation.ts"
export { SessionExecution } from "./session/SessionExecution.ts"
export { goesOn, longestText } from "./session/LongText.ts"
export * from "./session/Message.ts"
export {
  QuestionClosed,
  QuestionItem,
  QuestionOption,
  type PendingQuestion,
  type QuestionRef
} from "./session/Question.ts"
export { TodoItem } from "./session/Todos.ts"
export { type Estimated, type Usage } from "./session/Family.ts"
export { RunInterrupted } from "./session/RunCoordinator.ts"
export * from "./session/RunError.ts"
export * from "./session/Schemas.ts"
export * from "./session/Sessions.ts"
export { MessageUnreadable, type StoreError } from "./session/StoreError.ts"
export { SessionOwner, type Ownership } from "./session/SessionOwner.ts"
export type { Continued as ContinuedWork, Opening as ActivityOpening } from "./session/ActivityRows.ts"
export { SessionStore, type ContextRows, type UnsettledTool } from "./session/SessionStore.ts"
export type { ContextStart, FramedStep } from "./session/ShownRows.ts"
export { DatabaseError, immediately, ReadSql } from "./storage/Database.ts"
export * as Doctor from "./storage/Doctor.ts"
export * as PrivateFile from "./storage/PrivateFile.ts"
export { makeFolders } from "./storage/MakeFolders.ts"
export { ProjectTrust, trustAll, type Standing, type Trust } from "./trust/ProjectTrust.ts"
export * as TrustStore from "./trust/TrustStore.ts"
export { TrustError } from "./trust/TrustStore.ts"
export { HostTools } from "./tool/HostTools.ts"
export * from "./tool/ToolDefinition.ts"
export type { ToolEntry, ToolOverlay } from "./tool/ToolOverlay.ts"
export { Settled, ToolRegistry, type MaterializedTools, type RequestTools } from "./tool/ToolRegistry.ts"
