import { commonShape, loadConfig } from '../platform/config.ts';
import type { TrustFiles } from '../trust-store/config.ts';
import { trustFilesOf, trustShape } from '../trust-store/config.ts';

export interface VerifierConfig {
  readonly files: TrustFiles;
}

export function loadVerifierConfig(): VerifierConfig {
  return Object.freeze({ files: trustFilesOf(loadConfig({ ...commonShape, ...trustShape })) });
}
