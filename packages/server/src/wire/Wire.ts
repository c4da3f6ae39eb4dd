/**
 * The protocol of the socket: one JSON object per line. Spec: SO-5..SO-19 in specs/socket.md (FR-1..FR-5, NA-1, NA-2, DC-1, DC-2).
 */
export {
  deltaTexts,
  encodeFrame,
  type ErrorFrame,
  errorFrame,
  Frame,
  maxDeltaLength,
  RunFrame,
  type RunStatus,
  type SessionItem
} from "./Frame.ts"
export {
  type Answer,
  AskID,
  type Cancel,
  isCursor,
  isRunID,
  type List,
  longestPage,
  type Ping,
  Request,
  type Resume,
  Scope,
  type Send,
  type Status
} from "./Request.ts"
export { decode, decodeLine, WireError } from "./RequestLine.ts"
