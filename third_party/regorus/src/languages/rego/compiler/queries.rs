// Copyright (c) Microsoft Corporation.
// Licensed under the MIT License.
#![allow(
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::pattern_type_mismatch
)]

use super::expressions::try_eval_const;
use super::{Compiler, CompilerError, ComprehensionType, ContextType, Result};
use crate::ast::{self, ExprRef, LiteralStmt, Query};
use crate::rvm::instructions::GuardMode;
use crate::rvm::program::RuleType;
use crate::rvm::Instruction;
use alloc::format;
use alloc::vec::Vec;

impl<'a> Compiler<'a> {
    pub(super) fn compile_query(&mut self, query: &Query) -> Result<()> {
        self.push_scope();
        // Provost: a condition in a query inside of another one can end it before it loads these; what stands behind it loads
        // them itself. Before, it went on with registers that nobody had filled.
        let loaded = (self.current_input_register, self.current_data_register);

        let result = {
            let schedule = match &self.policy.inner.schedule {
                Some(s) => s
                    .queries
                    .get_checked(self.current_module_index, query.qidx)
                    .map_err(|err| {
                        CompilerError::General {
                            message: format!("schedule out of bounds: {err}"),
                        }
                        .at(&query.span)
                    })?,
                None => None,
            };

            let ordered_stmts: Vec<&LiteralStmt> = match schedule {
                Some(schedule) => schedule
                    .order
                    .iter()
                    .map(|i| &query.stmts[*i as usize])
                    .collect(),
                None => query.stmts.iter().collect(),
            };
            self.hoist_loops_and_compile_statements(&ordered_stmts)
        };

        (self.current_input_register, self.current_data_register) = loaded;
        self.pop_scope();

        result
    }

    pub(super) fn hoist_loops_and_compile_statements(
        &mut self,
        stmts: &[&LiteralStmt],
    ) -> Result<()> {
        for (idx, stmt) in stmts.iter().enumerate() {
            if !stmt.with_mods.is_empty() {
                return Err(CompilerError::WithKeywordUnsupported.at(&stmt.span));
            }
            let loop_exprs = self.get_statement_loops(stmt)?;

            if !loop_exprs.is_empty() {
                return self.compile_hoisted_loops(&stmts[idx..], &loop_exprs);
            }

            if matches!(&stmt.literal, ast::Literal::SomeIn { .. }) {
                return self.compile_some_in_statement(&stmts[idx..]);
            }

            self.compile_single_statement(stmt)?;
        }

        self.hoist_loops_and_emit_context_yield()
    }

    pub(super) fn hoist_loops_and_emit_context_yield(&mut self) -> Result<()> {
        if let Some(context) = self.context_stack.last() {
            match &context.context_type {
                ContextType::Every => {
                    return Ok(());
                }
                ContextType::Rule(_) | ContextType::Comprehension(_) => {}
            }
        }

        let (key_expr, value_expr) = match self.context_stack.last_mut() {
            Some(context) => {
                if context.key_value_loops_hoisted {
                    return self.emit_context_yield();
                }
                (context.key_expr.clone(), context.value_expr.clone())
            }
            None => return Ok(()),
        };

        let mut key_value_loops = Vec::new();

        if let Some(expr) = key_expr.as_ref() {
            key_value_loops.extend(self.get_expr_loops(expr)?);
        }

        if let Some(expr) = value_expr.as_ref() {
            key_value_loops.extend(self.get_expr_loops(expr)?);
        }

        if !key_value_loops.is_empty() {
            if let Some(context) = self.context_stack.last_mut() {
                context.key_value_loops_hoisted = true;
            }
            self.compile_hoisted_loops(&[], &key_value_loops)
        } else {
            self.emit_context_yield()
        }
    }

    pub(super) fn emit_context_yield(&mut self) -> Result<()> {
        if let Some(context) = self.context_stack.last().cloned() {
            let dest_register = context.dest_register;
            let span = &context.span;
            let is_computed =
                |expr: &Option<ExprRef>| expr.as_ref().is_some_and(|expr| try_eval_const(expr).is_none());
            let (has_value, has_key) = (is_computed(&context.value_expr), is_computed(&context.key_expr));
            let value_register = match context.value_expr {
                Some(expr) => self.compile_rego_expr(&expr)?,
                None => {
                    let value_reg = self.alloc_register()?;
                    self.emit_instruction(
                        Instruction::LoadBool {
                            dest: value_reg,
                            value: true,
                        },
                        span,
                    );
                    value_reg
                }
            };

            let key_register = context
                .key_expr
                .map(|key_expr| self.compile_rego_expr(&key_expr))
                .unwrap_or(Ok(value_register))?;

            // Provost: what has no value, or no name, is no member and no answer of this body, as in OPA: before, it stood in the
            // collection, and an `else` behind it was passed over.
            for (register, is_written) in [(value_register, has_value), (key_register, has_key)] {
                if is_written {
                    self.emit_instruction(
                        Instruction::Guard {
                            register,
                            mode: GuardMode::NotUndefined,
                        },
                        span,
                    );
                }
            }

            match context.context_type {
                ContextType::Comprehension(ComprehensionType::Array) => {
                    self.emit_instruction(
                        Instruction::ComprehensionYield {
                            value_reg: value_register,
                            key_reg: None,
                        },
                        span,
                    );
                }
                ContextType::Comprehension(ComprehensionType::Set) => {
                    self.emit_instruction(
                        Instruction::ComprehensionYield {
                            value_reg: value_register,
                            key_reg: None,
                        },
                        span,
                    );
                }
                ContextType::Rule(RuleType::PartialSet) => {
                    self.emit_instruction(
                        Instruction::SetAdd {
                            set: dest_register,
                            value: value_register,
                        },
                        span,
                    );
                }
                ContextType::Comprehension(ComprehensionType::Object) => {
                    self.emit_instruction(
                        Instruction::ComprehensionYield {
                            value_reg: value_register,
                            key_reg: Some(key_register),
                        },
                        span,
                    );
                }
                ContextType::Rule(RuleType::PartialObject) => {
                    self.emit_instruction(
                        Instruction::ObjectSet {
                            obj: dest_register,
                            key: key_register,
                            value: value_register,
                        },
                        span,
                    );
                }
                ContextType::Rule(RuleType::Complete) => {
                    self.program
                        .sole_values
                        .insert(self.program.instructions.len());
                    self.emit_instruction(
                        Instruction::Move {
                            dest: dest_register,
                            src: value_register,
                        },
                        span,
                    );
                }
                ContextType::Every => {}
            }
            Ok(())
        } else {
            Err(CompilerError::MissingYieldContext.into())
        }
    }

    pub(super) fn compile_single_statement(&mut self, stmt: &LiteralStmt) -> Result<()> {
        match &stmt.literal {
            ast::Literal::Expr { expr, .. } => {
                let assert_condition = !matches!(expr.as_ref(), ast::Expr::AssignExpr { .. });
                let _condition_reg =
                    self.compile_rego_expr_with_span(expr, &stmt.span, assert_condition)?;
            }
            ast::Literal::SomeIn { .. } => {
                return Err(CompilerError::SomeInNotHoisted.at(&stmt.span));
            }
            ast::Literal::Every {
                key,
                value,
                domain,
                query,
                ..
            } => {
                self.compile_every_quantifier(key, value, domain, query, &stmt.span)?;
            }
            ast::Literal::SomeVars { vars, .. } => {
                for var in vars {
                    self.add_unbound_variable(var.text());
                }
            }
            ast::Literal::NotExpr { expr, .. } => {
                let operands = self.compile_operands_of_negated(expr)?;
                let start = self.program.instructions.len();
                let expr_reg = self.with_soft_assert_mode(true, |compiler| {
                    compiler.compile_rego_expr_with_span(expr, expr.span(), false)
                })?;
                self.program.negate_from(start);
                for operand in operands {
                    self.loop_expr_register_map.remove(&operand);
                }

                let negated_reg = self.alloc_register()?;
                self.emit_instruction(
                    Instruction::Not {
                        dest: negated_reg,
                        operand: expr_reg,
                    },
                    &stmt.span,
                );

                self.emit_instruction(
                    Instruction::Guard {
                        register: negated_reg,
                        mode: GuardMode::Condition,
                    },
                    &stmt.span,
                );
            }
        }
        Ok(())
    }

    /// Provost, INVARIANT RG-8: compiles what OPA evaluates outside of the `not`: every operand that has to be evaluated first. Without a
    /// value for one the whole condition has none, and what an operand is refused is not under the `not` either. Only a
    /// reference that is negated itself, or compared by `==`, may be undefined inside.
    ///
    /// Returns the operands that are in registers, where the negated expression finds them.
    fn compile_operands_of_negated(&mut self, expr: &ExprRef) -> Result<Vec<ExprRef>> {
        use ast::{BoolOp, Expr as E};
        let mut operands = Vec::new();
        match expr.as_ref() {
            E::BoolExpr {
                op: BoolOp::Eq,
                lhs,
                rhs,
                ..
            }
            | E::AssignExpr { lhs, rhs, .. } => {
                keys_or_whole(lhs, &mut operands);
                keys_or_whole(rhs, &mut operands);
            }
            E::BoolExpr { lhs, rhs, .. } | E::ArithExpr { lhs, rhs, .. } | E::BinExpr { lhs, rhs, .. } => {
                operands.extend([lhs.clone(), rhs.clone()]);
            }
            E::Membership {
                key,
                value,
                collection,
                ..
            } => {
                operands.extend(key.clone());
                operands.extend([value.clone(), collection.clone()]);
            }
            E::Call { params, .. } => operands.extend(params.iter().cloned()),
            _ => keys_or_whole(expr, &mut operands),
        }
        operands.retain(|operand| try_eval_const(operand).is_none());
        let mut compiled: Vec<ExprRef> = Vec::with_capacity(operands.len());
        for operand in operands {
            // One that is the key of a loop around has its register.
            if self.loop_expr_register_map.contains_key(&operand) {
                continue;
            }
            let register = self.compile_rego_expr_with_span(&operand, operand.span(), false)?;
            self.emit_instruction(
                Instruction::Guard {
                    register,
                    mode: GuardMode::NotUndefined,
                },
                operand.span(),
            );
            self.loop_expr_register_map.insert(operand.clone(), register);
            compiled.push(operand);
        }
        Ok(compiled)
    }
}

/// Provost: adds what has to be evaluated before an expression that may be undefined under `not`: of a reference its computed
/// keys and what it starts from, and anything else as a whole.
fn keys_or_whole(expr: &ExprRef, operands: &mut Vec<ExprRef>) {
    let mut at = expr;
    loop {
        match at.as_ref() {
            ast::Expr::Var { .. } => return,
            ast::Expr::RefDot { refr, .. } => at = refr,
            ast::Expr::RefBrack { refr, index, .. } => {
                operands.push(index.clone());
                at = refr;
            }
            _ => return operands.push(at.clone()),
        }
    }
}
