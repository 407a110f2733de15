"""Figures: functions of finished numbers and axes; none of them computes what it draws."""
