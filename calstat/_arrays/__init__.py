"""Numbers on plain arrays: binning, likelihoods, covariances, test statistics, resampling.

Nothing here checks what a user passed, knows a label, or prints. pandas, patsy, statsmodels and matplotlib stay out.
"""
