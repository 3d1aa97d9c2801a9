#pragma once

#include "tests/reference/case.h"

/// One function a (kind, subject): runs the case and compares. The table in main.cpp lists them.
namespace spt::reference {

void architecture_case(Case& c);      ///< architecture / any registered body
void head_case(Case& c);              ///< head / model
void initial_model_case(Case& c);     ///< layer / model.reset_parameters
void attention_init_case(Case& c);    ///< layer / attention.reset_parameters
void mega_ema_case(Case& c);          ///< layer / mega.ema
void mega_init_case(Case& c);         ///< layer / mega.reset_parameters
void diagonal_kernel_case(Case& c);   ///< kernel / dlr, dss
void diagonal_layer_case(Case& c);    ///< layer / dlr, dss
void dlr_init_case(Case& c);          ///< init / dlr
void s4d_kernel_case(Case& c);        ///< kernel / s4d
void s4d_layer_case(Case& c);         ///< layer / s4d
void s4d_init_case(Case& c);          ///< init / s4d
void s4_kernel_case(Case& c);         ///< kernel / s4
void s4_layer_case(Case& c);          ///< layer / s4
void s4_init_case(Case& c);           ///< init / s4
void ssm_dense_kernel_case(Case& c);  ///< kernel / ssm-dense
void ssm_dense_layer_case(Case& c);   ///< layer / ssm-dense
void random_init_case(Case& c);       ///< init / random

void listops_tokenizer_case(Case& c);      ///< tokenizer / listops
void retrieval_tokenizer_case(Case& c);    ///< tokenizer / retrieval
void text_tokenizer_case(Case& c);         ///< tokenizer / text
void grey_image_case(Case& c);             ///< preprocess / cifar_grey
void rgb_image_case(Case& c);              ///< preprocess / cifar_rgb
void speech_case(Case& c);                 ///< preprocess / speech_commands
void bidmc_targets_case(Case& c);          ///< preprocess / bidmc_targets
void pathfinder_preprocess_case(Case& c);  ///< preprocess / pathfinder
void random_split_case(Case& c);           ///< split / random_split
void train_fraction_case(Case& c);         ///< split / train_fraction
void two_stage_case(Case& c);              ///< split / two_stage

void listops_value_case(Case& c);          ///< generator / listops value
void listops_statistics_case(Case& c);     ///< generator / lra listops generator
void pathfinder_parts_case(Case& c);       ///< generator / pathfinder parts
void pathfinder_statistics_case(Case& c);  ///< generator / pathfinder images

void supervised_case(Case& c);          ///< objective / supervised
void masked_tokens_case(Case& c);       ///< objective / masked_tokens
void masked_values_case(Case& c);       ///< objective / masked_values
void masked_levels_case(Case& c);       ///< objective / masked_levels
void causal_tokens_case(Case& c);       ///< objective / causal_tokens
void causal_values_case(Case& c);       ///< objective / causal_values
void causal_levels_case(Case& c);       ///< objective / causal_levels
void metric_aggregation_case(Case& c);  ///< objective / metric_aggregation

void optimizer_case(Case& c);    ///< optimizer / model
void training_case(Case& c);     ///< training / model
void schedule_case(Case& c);     ///< schedule / schedule
void interchange_case(Case& c);  ///< interchange / any source of names
void transfer_case(Case& c);     ///< transfer / model

}  // namespace spt::reference
